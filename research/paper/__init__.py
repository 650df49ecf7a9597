"""`research paper`: the figures and tables of the papers, each repeated by one command."""

from research.paper.command import register

__all__ = ["register"]
