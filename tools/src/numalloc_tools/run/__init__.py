"""`numalloc run`: a program under an allocator, with threads and memory where they are wanted."""

from numalloc_tools.run.command import register

__all__ = ["register"]
