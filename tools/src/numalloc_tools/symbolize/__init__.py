"""`numalloc symbolize`: names for the stacks of a report about a guarded object."""

from numalloc_tools.symbolize.command import register

__all__ = ["register"]
