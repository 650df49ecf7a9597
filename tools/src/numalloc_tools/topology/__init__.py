"""`numalloc topology`: the machine's nodes, how far they are apart, and what a program may use of them."""

from numalloc_tools.topology.command import register

__all__ = ["register"]
