"""The virtual NUMA machine: its kernel, its files, and how programs run in it."""
