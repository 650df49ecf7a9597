"""`numalloc bench`: numalloc beside every allocator that one would pick instead, in one run."""

from numalloc_tools.bench.command import app

__all__ = ["app"]
