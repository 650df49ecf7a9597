"""`research bundle` and `read-bundle`: the papers' experiments to somebody's machine, and their results back."""

from research.bundle.command import register

__all__ = ["register"]
