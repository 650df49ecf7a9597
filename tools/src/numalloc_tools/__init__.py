"""The tools of numalloc: the `numalloc` command and its parts."""

__version__ = "0.1.0"  # as in CMakeLists.txt
