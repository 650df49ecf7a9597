"""The pictures: who reads whose memory, what the modelled time is made of, speedup by threads."""

import math

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numalloc_tools.style import TEXT, colours

from research.scope.model import PARTS
from research.scope.results import Results, Run

_COLUMNS = 4
_SIDE = 3.0  # inches, of a matrix
_HIGHEST = 3.0  # ratio that is drawn: one that is far off would hide the others
_PART_COLOURS = ("#adb5bd", "#74c0fc", "#ffd43b", "#69db7c", "#d9480f", "#9c36b5", "#343a40")


def heat(runs: list[Run], which: str) -> Figure:
    """`which`: matrix or transfer_matrix of the counts. One colour scale, so that the panels can be compared."""
    columns = min(_COLUMNS, len(runs))
    rows = math.ceil(len(runs) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(_SIDE * columns + 0.8, _SIDE * rows + 0.3), squeeze=False, layout="constrained")
    found = [getattr(run.scope, which) for run in runs]
    most = max(float(matrix.max()) for matrix in found) or 1.0
    for ax, run, matrix in zip(axes.flat, runs, found, strict=False):
        ax.imshow(matrix, cmap="Oranges", vmin=0, vmax=most)
        remote = float(matrix.sum() - np.trace(matrix))
        ax.set_title(f"{run.name}\n{100 * remote / (matrix.sum() or 1):.3g} % of {matrix.sum():,.0f} remote", fontsize=9)
        ticks = range(0, len(matrix), max(1, len(matrix) // 8))
        ax.set_xticks(ticks)
        ax.set_yticks(ticks)
        ax.grid(False)
    for ax in list(axes.flat)[len(runs) :]:
        ax.set_visible(False)
    figure.supxlabel("node of the memory" if which == "matrix" else "node of the cache that gave it", fontsize=9)
    figure.supylabel("node of the CPU", fontsize=9)
    figure.colorbar(ScalarMappable(Normalize(0, most), "Oranges"), ax=axes, shrink=0.7, label="lines")
    return figure


def bars(runs: list[Run]) -> Figure:
    """Modelled time of the longest CPU or thread, its parts on top of each other, and what other latencies would make of it."""
    figure, ax = plt.subplots(figsize=(12, 0.42 * len(runs) + 1.4))
    names = [run.name for run in runs]
    left = np.zeros(len(runs))
    for part, colour in zip(PARTS, _PART_COLOURS, strict=True):
        values = np.array([1e3 * run.modelled.parts[part] for run in runs])
        ax.barh(names, values, left=left, color=colour, label=part, height=0.7)
        left += values
    for place, run in enumerate(runs):
        low, high = (1e3 * value for value in run.modelled.range)
        ax.plot([low, high], [place, place], color=TEXT, linewidth=1, marker="|", markersize=7)
    ax.invert_yaxis()
    ax.set_xlabel("modelled milliseconds; the line: latencies of memory and other caches x 0.5 to x 2")
    ax.grid(axis="y", visible=False)
    ax.grid(axis="x", visible=True)
    figure.legend(ncols=len(PARTS), loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=9)
    figure.tight_layout()
    return figure


def ratios(values: dict[str, dict[str, float]], label: str) -> Figure:
    """A group of bars for each program, a bar for each name; the line is at 1."""
    programs = list(dict.fromkeys(program for one in values.values() for program in one))
    width, colour = 0.85 / len(values), colours(list(values))
    figure, ax = plt.subplots(figsize=(max(6.0, 0.16 * len(programs) * len(values) + 2), 4))
    for number, (name, one) in enumerate(values.items()):
        left = [place + (number - len(values) / 2 + 0.5) * width for place in range(len(programs))]
        ax.bar(left, [one.get(program, 0) for program in programs], width, color=colour[name], label=name)
    ax.axhline(1, color=TEXT, linewidth=0.8)
    ax.set_xticks(range(len(programs)), programs, rotation=30, ha="right")
    ax.set_ylim(0, min(_HIGHEST, 1.05 * max(max(one.values(), default=1.0) for one in values.values())))
    ax.set_ylabel(label)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    return figure


def speedups(swept: dict[str, Results], baseline: str) -> Figure | None:
    """A panel for each program that has several numbers of threads."""
    fit = {name: (results, first) for name, results in swept.items() if (first := _first(results, baseline))}
    if not fit:
        return None
    columns = min(2, len(fit))
    rows = math.ceil(len(fit) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(5 * columns, 3.3 * rows), squeeze=False, layout="constrained")
    for ax, (name, (results, first)) in zip(axes.flat, fit.items(), strict=False):
        _curves(ax, results, first)
        ax.set_title(name)
    for ax in list(axes.flat)[len(fit) :]:
        ax.set_visible(False)
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def speedup(results: Results, baseline: str) -> Figure | None:
    """Modelled time of the baseline with the fewest threads, to that of each with each number of threads."""
    if (first := _first(results, baseline)) is None:
        return None
    figure, ax = plt.subplots(figsize=(7, 4))
    _curves(ax, results, first)
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.tight_layout()
    return figure


def _first(results: Results, baseline: str) -> Run | None:
    """The baseline with the fewest threads, if there are more numbers than that."""
    numbers = sorted({run.threads for run in results.good})
    if len(numbers) < 2:
        return None
    return next((run for run in results.good if run.allocator == baseline and run.threads == numbers[0]), None)


def _curves(ax: Axes, results: Results, first: Run) -> None:
    numbers = sorted({run.threads for run in results.good})
    colour = colours(results.allocators)
    for name in results.allocators:
        points = sorted((run.threads, first.modelled.seconds / run.modelled.seconds) for run in results.good if run.allocator == name)
        ax.plot(*zip(*points, strict=True), marker="o", markersize=4, linewidth=1.6, color=colour[name], label=name)
    ax.set_xscale("log", base=2)
    ax.set_xticks(numbers, map(str, numbers))
    ax.minorticks_off()
    ax.set_ylim(bottom=0)
    ax.set_xlabel("threads")
    ax.set_ylabel(f"modelled speedup over {first.allocator}\nwith {numbers[0]}")
