"""`numalloc run`: a program under an allocator, with threads and memory on chosen nodes."""

from numalloc_tools.run.command import register

__all__ = ["register"]
