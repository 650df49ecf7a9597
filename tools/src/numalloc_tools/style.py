"""The style of all figures: each allocator has the same colour everywhere."""

import io
import re
from pathlib import Path

import matplotlib

from numalloc_tools.allocators import BOUND

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

_OURS = "#d9480f"
_COLOURS = {
    "numalloc": _OURS,
    "glibc": "#868e96",
    "mimalloc3": "#1971c2",
    "mimalloc": "#74c0fc",
    "snmalloc": "#2f9e44",
    "rpmalloc": "#9c36b5",
    "jemalloc-new": "#0b7285",
    "jemalloc": "#66d9e8",
    "tcmalloc": "#e8b007",
    "tbbmalloc": "#a9896b",
    "tcmalloc-new": "#f08c00",
    "hoard": "#c2255c",
}
_MORE = (
    "#5c7cfa #f783ac #94d82d #495057 #ff922b #20c997 #845ef7 #c92a2a #364fc7 #a61e4d #5c940d #adb5bd #ffd43b #099268 #d0bfff #ffa8a8"
).split()
TEXT, FAINT = "#212529", "#dee2e6"

plt.rcParams.update(
    {
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": TEXT,
        "axes.labelcolor": TEXT,
        "axes.edgecolor": FAINT,
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "xtick.color": TEXT,
        "ytick.color": TEXT,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "grid.color": FAINT,
        "grid.linewidth": 0.8,
        "axes.axisbelow": True,
        "legend.frameon": False,
        "svg.fonttype": "none",
        "figure.dpi": 100,
        "savefig.dpi": 160,
        "svg.hashsalt": "numalloc",
    }
)


def colours(names: list[str]) -> dict[str, str]:
    """An allocator with bound threads is paler."""
    rest = iter(_MORE * len(names))
    found: dict[str, str] = {}
    for base in dict.fromkeys(name.removesuffix(BOUND) for name in names):
        found[base] = _COLOURS.get(base) or next(rest)
        found[base + BOUND] = _paler(found[base])
    return found


def _paler(colour: str) -> str:
    return "#" + "".join(f"{(int(colour[at : at + 2], 16) + 2 * 255) // 3:02x}" for at in (1, 3, 5))


def save(figure: Figure, path: Path) -> None:
    """Writes an SVG file. The same data give the same bytes: no date, no version, and names from a fixed salt."""
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    # Matplotlib writes blanks at the ends of lines.
    path.write_text(re.sub(r"[ \t]+$", "", path.read_text(), flags=re.M))


def as_svg(figure: Figure) -> str:
    """For a page: the figure shrinks with it, and its text can be searched."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'(<svg[^>]*?) width="([^"]*)"', r'\1 style="max-width:\2"', text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    return re.sub(r"font: ([^;\"]*?)'[^;\"]*", r"font: \1 system-ui, sans-serif", text)
