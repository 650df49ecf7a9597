"""The tools of numalloc: the `numalloc` command and what stands behind it."""

__version__ = "0.1.0"  # as in CMakeLists.txt
