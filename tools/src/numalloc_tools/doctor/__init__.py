"""`numalloc doctor`: what on a machine, in a container or in a program hurts, why, and how to mend it."""

from numalloc_tools.doctor.command import register

__all__ = ["register"]
