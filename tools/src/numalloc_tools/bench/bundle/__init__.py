"""`numalloc bench bundle` and `read-bundle`: the papers' experiments to somebody's machine, and their results back."""

from numalloc_tools.bench.bundle.command import register

__all__ = ["register"]
