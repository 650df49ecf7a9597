"""Where a command writes: a terminal as wide as it is, or a file or pipe without colours."""

import sys

from rich.console import Console


def console(elsewhere: int) -> Console:
    """`elsewhere`: columns where it is no terminal."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # bars and arrows, where the locale has none
    found = Console(highlight=False, markup=False)
    if not found.is_terminal:
        found.width = elsewhere
    return found
