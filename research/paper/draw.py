"""One experiment's table as a picture: a group of bars for each row, a bar for each allocator."""

from pathlib import Path

from matplotlib import pyplot as plt
from numalloc_tools.style import TEXT, colours

from research.paper.view import Shown

_INCHES_A_BAR, _NARROWEST, _WIDEST, _HEIGHT = 0.16, 6.0, 28.0, 3.6


def write(table: Shown, title: str, path: Path) -> None:
    """Always the same of the same data."""
    wide = min(_WIDEST, max(_NARROWEST, _INCHES_A_BAR * (len(table.columns) + 1) * len(table.rows)))
    figure, axes = plt.subplots(figsize=(wide, _HEIGHT))
    paint = colours(table.columns)
    width = 0.85 / max(1, len(table.columns))
    for number, name in enumerate(table.columns):
        at = [place - 0.425 + (number + 0.5) * width for place, row in enumerate(table.rows.values()) if name in row]
        axes.bar(at, [row[name] for row in table.rows.values() if name in row], width, color=paint[name], label=name)
    if " / " in table.heading:
        axes.axhline(1, color=TEXT, linewidth=0.8)
    axes.set_xticks(range(len(table.rows)), list(table.rows), rotation=35, ha="right", fontsize=8)
    axes.set_ylabel(table.heading, fontsize=7)
    axes.set_title(title)
    axes.legend(fontsize=7, ncols=4, loc="upper left", bbox_to_anchor=(0, -0.45))
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
