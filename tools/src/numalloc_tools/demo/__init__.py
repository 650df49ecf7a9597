"""`numalloc demo`: a real program under glibc's malloc and under numalloc, side by side."""

from numalloc_tools.demo.command import register

__all__ = ["register"]
