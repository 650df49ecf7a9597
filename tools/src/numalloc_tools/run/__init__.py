"""`numalloc run`: a program under an allocator, with threads and memory where they are wanted."""

from numalloc_tools.run.command import register
from numalloc_tools.run.prepare import Launch, prepared
from numalloc_tools.run.setting import Setting

__all__ = ["Launch", "Setting", "prepared", "register"]
