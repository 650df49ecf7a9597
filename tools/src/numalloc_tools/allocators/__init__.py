"""The allocators that the commands compare: their data, how to find or build them, and how to preload them."""

from numalloc_tools.allocators.allocator import BASELINE, BOUND, DEBIAN, NAMES, OURS, PACKAGED, Allocator, shown
from numalloc_tools.allocators.compared import chosen, given

__all__ = ["BASELINE", "BOUND", "DEBIAN", "NAMES", "OURS", "PACKAGED", "Allocator", "chosen", "given", "shown"]
