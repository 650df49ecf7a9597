"""Lines of the speedup with more threads, one panel per program."""

import math

from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from numalloc_tools.bench.results import TIME, Summary
from numalloc_tools.style import TEXT, colours

_COLUMNS = 4
_WIDTH, _HEIGHT = 3.0, 2.5  # inches, of a panel


def draw(summary: Summary, names: list[str]) -> Figure | None:
    names = summary.allocators_with(TIME, names)
    numbers: dict[str, list[int]] = {}
    timed = set(summary.results.cases_with(TIME))
    for run in summary.results.runs:
        if run.case in timed and run.threads not in numbers.setdefault(run.program, []):
            numbers[run.program].append(run.threads)
    panels = {}
    for program, threads in numbers.items():
        threads.sort()
        lines = _lines(summary, names, program, threads)
        if len(threads) > 1 and lines:
            panels[program] = lines
    if not panels:
        return None
    if len(panels) > 1 and (mean := _mean(panels)):
        panels["geometric mean"] = mean
    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(_WIDTH * columns, _HEIGHT * rows), squeeze=False)
    colour = colours(names)
    for ax, (program, lines) in zip(axes.flat, panels.items(), strict=False):
        for name, points in lines.items():
            ax.plot(*zip(*sorted(points.items()), strict=True), marker="o", markersize=3.5, linewidth=1.6, color=colour[name], label=name)
        ticks = sorted({x for points in lines.values() for x in points})
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, map(str, ticks))
        ax.minorticks_off()
        ax.axhline(1, color=TEXT, linewidth=0.6)
        ax.set_ylim(bottom=0)
        ax.set_title(program)
    for ax in list(axes.flat)[len(panels) :]:
        ax.set_visible(False)
    figure.supxlabel("threads", fontsize=10)
    handles = {label: line for ax in axes.flat for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), ncols=min(len(handles), 6), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.tight_layout()
    return figure


def _lines(summary: Summary, names: list[str], program: str, threads: list[int]) -> dict[str, dict[int, float]]:
    base = summary.cell(f"{program}/{threads[0]}", summary.baseline)
    if not base.ok or not base.value:
        return {}
    lines = {}
    for name in names:
        cells = {number: summary.cell(f"{program}/{number}", name) for number in threads}
        points = {number: base.value / cell.value for number, cell in cells.items() if cell.ok and cell.value}
        if points:
            lines[name] = points
    return lines


def _mean(panels: dict[str, dict[str, dict[int, float]]]) -> dict[str, dict[int, float]]:
    """Over the programs for which every allocator has a value with that number of threads."""
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    numbers = {x for lines in panels.values() for points in lines.values() for x in points}
    result: dict[str, dict[int, float]] = {}
    for number in sorted(numbers):
        full = [lines for lines in panels.values() if all(number in lines.get(name, {}) for name in names)]
        for name in names if full else ():
            logs = [math.log(lines[name][number]) for lines in full]
            result.setdefault(name, {})[number] = math.exp(sum(logs) / len(logs))
    return result
