"""`numalloc tune`: looks for good settings for a program by running it under many."""
