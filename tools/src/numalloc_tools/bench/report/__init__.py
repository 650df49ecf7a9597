"""`numalloc bench report`: draws the paper's figures from one or more files of results."""

from numalloc_tools.bench.report.command import register

__all__ = ["register"]
