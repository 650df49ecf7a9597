"""`numalloc tune`: searches for good settings for a program by running it under many."""

from numalloc_tools.tune.command import register

__all__ = ["register"]
