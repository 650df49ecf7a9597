"""Manual pages, made from the commands, the header and the library's tables."""

from numalloc_tools.man.command import register

__all__ = ["register"]
