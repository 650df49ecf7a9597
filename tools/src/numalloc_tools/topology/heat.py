"""Distances as a small heat map: numbers where they fit, otherwise one mark per node."""

from rich.console import Console
from rich.text import Text

from numalloc_tools.machine.nodes import Nodes

_COLOURS = ("#69db7c", "#c0eb75", "#ffe066", "#ffa94d", "#ff8787", "#da77f2")  # black text is legible on each
_MARKS, _PLAIN_MARKS = "·░▒▓█#%@", ".:-=+*#@"
_CELL = 4


def shades(distances: list[list[int]]) -> dict[int, str]:
    """A colour for each distance, from near to far."""
    known = sorted({distance for row in distances for distance in row})
    steps = max(1, len(known) - 1)
    return {distance: _COLOURS[round(place * (len(_COLOURS) - 1) / steps)] for place, distance in enumerate(known)}


def show(nodes: Nodes, console: Console) -> None:
    colours = shades(nodes.distances)
    margin = max(len(str(number)) for number in nodes.numbers) + 1
    console.print(Text("distances", style="bold").append(" from the row's node to the column's", "dim"))
    if margin + _CELL * len(nodes) <= console.width:
        console.print(" " * margin + "".join(f"{number:>{_CELL - 1}} " for number in nodes.numbers), style="dim")
        for number, row in zip(nodes.numbers, nodes.distances):
            line = Text("").append(f"{number:<{margin}}", "dim")
            for distance in row:
                line.append(f"{distance:>{_CELL - 1}} ", f"black on {colours[distance]}")
            console.print(line)
    else:
        _marks(nodes, margin, colours, console)
    console.print()


def _marks(nodes: Nodes, margin: int, colours: dict[int, str], console: Console) -> None:
    marks = _PLAIN_MARKS if console.options.ascii_only else _MARKS
    wide = 2 if margin + 2 * len(nodes) <= console.width else 1
    ranks = {distance: min(place * len(marks) // len(colours), len(marks) - 1) for place, distance in enumerate(sorted(colours))}
    if len(colours) <= len(marks):
        ranks = {distance: place for place, distance in enumerate(sorted(colours))}
    for number, row in zip(nodes.numbers, nodes.distances):
        line = Text("").append(f"{number:<{margin}}", "dim")
        for distance in row:
            line.append(marks[ranks[distance]] * wide, colours[distance])
        console.print(line, soft_wrap=True)
    legend = Text("")
    for distance in sorted(colours):
        legend.append(f"{marks[ranks[distance]] * wide}", colours[distance]).append(f" {distance}   ")
    console.print(legend)
