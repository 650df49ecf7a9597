"""The tools of numalloc: the `numalloc` command and what stands behind it."""
