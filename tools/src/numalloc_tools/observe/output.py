"""Output that is complete without a terminal, and checks that the commands share."""

import json
import sys

from rich.console import Console, RenderableType

from numalloc_tools.problem import Problem

_WIDTH = 120  # the width without a terminal; in a narrower table figures are cut


def console() -> Console:
    found = Console()
    if not found.is_terminal:
        found = Console(width=max(found.width, _WIDTH))
    return found


def show(console: Console, what: RenderableType, again: bool) -> None:
    """Removes the blanks at the ends of a table's lines, which disturb copying and comparing."""
    with console.capture() as captured:
        console.print(what)
    lines = "\n".join(line.rstrip() for line in captured.get().splitlines())
    sys.stdout.write(("\n" if again else "") + lines.strip("\n") + "\n")
    sys.stdout.flush()


def line_of_json(data: dict) -> None:
    sys.stdout.write(json.dumps(data) + "\n")
    sys.stdout.flush()


def seconds_of(value: float, option: str) -> float:
    if not 0.05 <= value <= 86400:
        raise Problem(f"{option}: {value:g} is out of range; accepted: seconds, 0.05 to 86400")
    return value
