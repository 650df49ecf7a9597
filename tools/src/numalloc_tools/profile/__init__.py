"""`numalloc profile`: who allocates, on which nodes, and whose memory is remote."""

from numalloc_tools.profile.command import register

__all__ = ["register"]
