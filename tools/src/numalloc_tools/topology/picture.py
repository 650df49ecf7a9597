"""The machine as a drawing: nodes as boxes with their CPUs and a bar of memory, and their distances."""

import io
import math
import textwrap

from matplotlib import pyplot as plt
from matplotlib.colors import ListedColormap
from matplotlib.patches import FancyBboxPatch, Rectangle

from numalloc_tools.machine.facts import Machine
from numalloc_tools.machine.kinds import DRAM, HBM
from numalloc_tools.machine.lists import ranges
from numalloc_tools.machine.nodes import Node
from numalloc_tools.machine.words import count, size
from numalloc_tools.style import FAINT, TEXT
from numalloc_tools.topology.heat import shades

_WIDTH, _HEIGHT, _GAP = 2.6, 1.35, 0.22  # inches of a box
_MOST_ACROSS = 8
_NUMBERS_UP_TO = 20  # nodes: the map of a machine with more has no numbers
_LETTERS = 34  # across a box
_LINES = 2  # of CPUs in a box
_FACES = {DRAM: "#e7f5ff", HBM: "#fff4e6"}
_OTHER_FACE, _USED, _LEFT = "#f3f0ff", "#1971c2", "#d0ebff"


def svg(machine: Machine) -> str:
    count_of_nodes = len(machine.nodes)
    across = _across(count_of_nodes)
    down = math.ceil(count_of_nodes / across)
    wide, high = across * (_WIDTH + _GAP) + _GAP, down * (_HEIGHT + _GAP) + _GAP
    several = count_of_nodes > 1
    map_side = min(max(2.2, 0.34 * count_of_nodes), high + 1.0, 9.0) if several else 0.0
    width, height = wide + (map_side + 1.0 if several else 0), max(high, map_side + 0.6) + 0.6
    figure = plt.figure(figsize=(width, height))
    _title(figure, machine, height)
    boxes = figure.add_axes((0, (height - 0.6 - high) / height, wide / width, high / height))
    boxes.set_xlim(0, wide)
    boxes.set_ylim(high, 0)
    boxes.axis("off")
    boxes.grid(False)
    for place, node in enumerate(machine.nodes):
        at = (_GAP + place % across * (_WIDTH + _GAP), _GAP + place // across * (_HEIGHT + _GAP))
        _box(boxes, node, machine, *at)
    if several:
        side = figure.add_axes(((wide + 0.5) / width, (height - 1.1 - map_side) / height, map_side / width, map_side / height))
        _map(side, machine)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Title": f"Memory nodes of {machine.name or 'a machine'}"})
    plt.close(figure)
    return buffer.getvalue()


def _across(count_of_nodes: int) -> int:
    """Prefers rows of equal length, about twice as long as there are rows: sockets have equal numbers of nodes."""
    wanted = math.sqrt(2 * count_of_nodes)
    even = [across for across in range(1, _MOST_ACROSS + 1) if count_of_nodes % across == 0 and abs(across - wanted) <= 2]
    return min(even, key=lambda across: abs(across - wanted), default=min(_MOST_ACROSS, math.ceil(wanted)))


def _title(figure, machine: Machine, height: float) -> None:
    processor = machine.processor
    figure.text(_GAP / figure.get_figwidth(), 1 - 0.3 / height, machine.name or "machine", fontsize=13, fontweight="bold", va="center")
    words = [
        processor.model,
        count(len(machine.nodes), "node"),
        count(len(processor.packages), "package"),
        count(len(processor.cpus), "CPU"),
        size(machine.memory),
        f"Linux {machine.kernel.release}",
    ]
    line = textwrap.shorten(", ".join(filter(None, words)), int(figure.get_figwidth() * 15), placeholder=" …")
    figure.text(_GAP / figure.get_figwidth(), 1 - 0.52 / height, line, fontsize=8.5, va="center")


def _box(axes, node: Node, machine: Machine, left: float, top: float) -> None:
    face = _FACES.get(node.kind, _OTHER_FACE)
    axes.add_patch(
        FancyBboxPatch(
            (left, top), _WIDTH, _HEIGHT, boxstyle="round,pad=0,rounding_size=0.08", facecolor=face, edgecolor=TEXT, linewidth=0.8
        )
    )
    axes.text(left + 0.1, top + 0.2, f"node {node.number}", fontsize=10, fontweight="bold", va="center")
    packages = machine.processor.packages_of(node.cpus)
    where = f"package {ranges(packages)}" if packages and len(machine.processor.packages) > 1 else ""
    kind = node.kind if node.memory else "no memory"
    axes.text(left + _WIDTH - 0.1, top + 0.2, ", ".join(filter(None, [where, kind])), fontsize=8, va="center", ha="right")
    lines = textwrap.wrap(f"CPUs {ranges(node.cpus)}".replace(",", ", "), _LETTERS) if node.cpus else ["no CPUs"]
    if len(lines) > _LINES:
        lines = [*lines[: _LINES - 1], f"{lines[_LINES - 1][: _LETTERS - 14]} … ({len(node.cpus)} in all)"]
    axes.text(left + 0.1, top + 0.37, "\n".join(lines), fontsize=7.5, va="top", linespacing=1.3)
    if node.memory:
        _memory(axes, node, left + 0.1, top + _HEIGHT - 0.45)


def _memory(axes, node: Node, left: float, top: float) -> None:
    used = 1 - (node.free + node.file_cache) / node.memory
    length = _WIDTH - 0.2
    axes.add_patch(Rectangle((left, top), length, 0.14, facecolor=_LEFT, edgecolor="none"))
    axes.add_patch(Rectangle((left, top), length * used, 0.14, facecolor=_USED, edgecolor="none"))
    words = f"{size(node.memory)}, {used:.0%} in use"
    reserved = sum(pages.size * pages.total for pages in node.huge_pages)
    axes.text(left, top + 0.29, words + (f", {size(reserved)} reserved" if reserved else ""), fontsize=7.5, va="center")


def _map(axes, machine: Machine) -> None:
    nodes = machine.nodes
    colours = shades(nodes.distances)
    ranks = {distance: place for place, distance in enumerate(sorted(colours))}
    table = [[ranks[distance] for distance in row] for row in nodes.distances]
    palette = ListedColormap([colours[distance] for distance in sorted(colours)])
    axes.imshow(table, cmap=palette, vmin=-0.5, vmax=len(ranks) - 0.5)
    axes.grid(False)
    axes.set_title("distances", fontsize=10)
    step = max(1, len(nodes) // _NUMBERS_UP_TO)
    shown = list(range(0, len(nodes), step))
    for set_ticks in (axes.set_xticks, axes.set_yticks):
        set_ticks(shown, [str(nodes.numbers[place]) for place in shown], fontsize=7)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_color(FAINT)
    if len(nodes) <= _NUMBERS_UP_TO:
        for y, row in enumerate(nodes.distances):
            for x, distance in enumerate(row):
                axes.text(x, y, str(distance), fontsize=7, ha="center", va="center")
    else:
        legend = [
            plt.Line2D([], [], marker="s", linestyle="", color=colours[distance], label=str(distance)) for distance in sorted(colours)
        ]
        axes.legend(
            handles=legend,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.06),
            ncols=min(8, len(legend)),
            fontsize=7,
            handletextpad=0.2,
        )
