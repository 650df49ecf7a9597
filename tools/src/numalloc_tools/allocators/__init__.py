"""The allocators that the commands compare: what each is, how it is found or built, and how a program gets it."""

from numalloc_tools.allocators.allocator import BASELINE, BOUND, DEBIAN, NAMES, OURS, PACKAGED, Allocator, shown
from numalloc_tools.allocators.compared import chosen, given

__all__ = ["BASELINE", "BOUND", "DEBIAN", "NAMES", "OURS", "PACKAGED", "Allocator", "chosen", "given", "shown"]
