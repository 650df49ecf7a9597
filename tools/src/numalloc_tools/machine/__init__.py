"""Facts about a machine, and about the part of it that a process may use, from the kernel's files."""
