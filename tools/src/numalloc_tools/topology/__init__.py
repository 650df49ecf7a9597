"""`numalloc topology`: shows the machine's nodes, their distances, and the parts that a program may use."""

from numalloc_tools.topology.command import register

__all__ = ["register"]
