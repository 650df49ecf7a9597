"""`numalloc bench paper`: the figures and tables of the papers, each repeated by one command."""

from numalloc_tools.bench.paper.command import register

__all__ = ["register"]
