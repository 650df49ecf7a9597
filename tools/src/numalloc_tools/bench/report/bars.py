"""Bars side by side: a group for each program, a bar for each allocator."""

import math

from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from numalloc_tools.allocators import shown
from numalloc_tools.bench.results import CPU, NOT_RUN, TIME, Summary
from numalloc_tools.style import TEXT, colours

_BARS_IN_A_ROW = 60
_WIDTH, _ROW_HEIGHT = 12.0, 2.9  # inches
_TALLEST = 3.0  # a higher bar is cut, and its value written on it
_MEAN = "geometric\nmean"


def draw(summary: Summary, names: list[str], figure: str, base: str | None, partners: dict[str, str] | None = None) -> Figure | None:
    """Ratios to `base`, or of each allocator to its partner."""
    names = summary.allocators_with(figure, names)
    table = {name: _ratios(summary, name, figure, (partners or {}).get(name)) for name in names}
    others = [name for name in names if name != base]
    standard = summary.results.standard_cases(figure)
    cases = [case for case in standard if any(isinstance(table[name][case], float) for name in others)]
    if not cases:
        return None
    working = summary.compared_throughout(figure, names, standard)
    complete = [case for case in cases if all(isinstance(table[name][case], float) for name in working)]
    if complete:
        for name in names:
            found = [value for case in complete if isinstance(value := table[name][case], float)]
            table[name][_MEAN] = _geometric(found) if len(found) == len(complete) else NOT_RUN
        cases = [*cases, _MEAN]
    label = {TIME: "time", CPU: "processor time"}.get(figure, "peak resident set")
    return _grouped(table, names, cases, f"{label} / {base}" if base else f"{label} / with bound threads", 1.0)


def draw_shares(summary: Summary, names: list[str], figure: str, label: str) -> Figure | None:
    """Percent, as they are."""
    names = summary.allocators_with(figure, names)
    cases = summary.results.cases_with(figure)
    cells = {name: {case: summary.cell(case, name, figure) for case in cases} for name in names}
    table: dict = {name: {case: cell.value if cell.ok else cell.status for case, cell in row.items()} for name, row in cells.items()}
    cases = [case for case in cases if any(isinstance(table[name][case], float) for name in names)]
    return _grouped(table, names, cases, label, None) if cases else None


def _ratios(summary: Summary, name: str, figure: str, partner: str | None) -> dict[str, float | str]:
    result: dict[str, float | str] = {}
    against = Summary(summary.results, partner) if partner else summary
    for case in summary.results.cases_with(figure):
        cell = against.cell(case, name, figure)
        result[case] = cell.status if not cell.ok else cell.ratio or NOT_RUN
    return result


def _geometric(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _grouped(table: dict, names: list[str], cases: list[str], label: str, line: float | None) -> Figure:
    in_a_row = max(3, _BARS_IN_A_ROW // len(names))
    rows = math.ceil(len(cases) / in_a_row)
    in_a_row = math.ceil(len(cases) / rows)
    figure, axes = plt.subplots(rows, 1, figsize=(_WIDTH, _ROW_HEIGHT * rows + 0.6), squeeze=False)
    colour = colours(names)
    values = [table[name][case] for name in names for case in cases if isinstance(table[name][case], float)]
    top = min(max(values) * 1.08, _TALLEST) if line else max(*values, 1) * 1.08
    width = 0.84 / len(names)
    for row, ax in enumerate(axes[:, 0]):
        here = cases[row * in_a_row : (row + 1) * in_a_row]
        for i, name in enumerate(names):
            for x, case in enumerate(here):
                at = x + (i - (len(names) - 1) / 2) * width
                _bar(ax, at, width, table[name][case], top, colour[name])
        if line:
            ax.axhline(line, color=TEXT, linewidth=0.8, zorder=3)
        ax.set_xlim(-0.5, in_a_row - 0.5)
        ax.set_ylim(0, top)
        ax.set_xticks(range(len(here)), [case.replace("/", "\n") for case in here], fontsize=9)
        ax.tick_params(axis="x", length=0)
        ax.set_ylabel(label, fontsize=9)
    figure.legend(
        handles=[Patch(color=colour[name], label=shown(name)) for name in names],
        ncols=min(len(names), 6),
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
    )
    figure.tight_layout()
    return figure


def _bar(ax, at: float, width: float, value: float | str, top: float, colour: str) -> None:
    if not isinstance(value, float):
        if value == NOT_RUN:
            return
        ax.text(at, top * 0.01, "×", ha="center", va="bottom", color=colour, fontsize=10)
        return
    ax.bar(at, min(value, top), width * 0.92, color=colour)
    if value > top:
        ax.text(at, top, f"{value:.1f}", ha="center", va="bottom", fontsize=7, rotation=90)
