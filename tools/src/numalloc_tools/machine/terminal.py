"""The output of a command: a terminal of its width, or a file or pipe without colours."""

import sys

from rich.console import Console


def console(elsewhere: int) -> Console:
    """`elsewhere`: the width in columns if the output is no terminal."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # bars and arrows for a locale without them
    found = Console(highlight=False, markup=False)
    if not found.is_terminal:
        found.width = elsewhere
    return found
