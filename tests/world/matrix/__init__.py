"""Real software under glibc's malloc and under ours, one cell after the other."""
