"""What there is to know of a machine, and of the part of it that a process may use, as the kernel tells it."""
