"""One experiment's results as a table of numbers: rows are programs with threads, columns allocators."""

import math
from dataclasses import dataclass, field
from statistics import median

from numalloc_tools.allocators import BASELINE, BOUND
from numalloc_tools.bench.levers import AT
from numalloc_tools.bench.results import Results, Summary, merged

from research.paper.table import Experiment

_MEAN = "geometric mean"


@dataclass
class Shown:
    heading: str
    columns: list[str]
    rows: dict[str, dict[str, float]] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)  # cells that are empty


def shown(experiment: Experiment, parts: list[Results]) -> list[Shown]:
    """A table for each figure that the experiment names."""
    results = merged(parts) if len({part.settings.get("paper") for part in parts}) == 1 else parts[0]
    return [_table(experiment, results, figure) for figure in experiment.figure.split(",")]


def _table(experiment: Experiment, results: Results, figure: str) -> Shown:
    names = [name for name in results.names if not experiment.columns or name in experiment.columns]
    base = experiment.base if experiment.base in names else _baseline(names)
    table = Shown(_heading(experiment, figure, base), names)
    summary = Summary(results, base)
    for case in results.cases:
        row = {}
        for name in names:
            value = _value(experiment, summary, case, name, figure)
            if value is not None:
                row[name] = value
            elif (cell := summary.cell(case, name, figure)).reason and cell.reason not in table.why:
                table.why.append(cell.reason)
        if row:
            table.rows[case] = row
    if experiment.view == "speedup":
        table.rows = {row: values for row, values in table.rows.items() if values}
    if experiment.view in ("ratio", "partner"):
        table.columns = [name for name in names if any(name in row for row in table.rows.values())]
        complete = [row for row in table.rows.values() if all(name in row for name in table.columns)]
        if len(complete) > 1:
            table.rows[f"{_MEAN} of {len(complete)}"] = {
                name: math.exp(sum(math.log(row[name]) for row in complete) / len(complete)) for name in table.columns
            }
    return table


def _baseline(names: list[str]) -> str:
    plain = [name for name in names if name.partition(AT)[0] == BASELINE]
    return (plain or names)[0]


def _heading(experiment: Experiment, figure: str, base: str) -> str:
    if experiment.over:
        return f"{figure} / {experiment.over}"
    return {
        "ratio": f"{figure} / {base}'s, medians of the rounds' own ratios",
        "partner": f"{figure} without binding / with",
        "speedup": f"{base}'s {figure} with the fewest threads / {figure}",
        "value": f"{figure}, medians",
        "spread": f"{figure}: the slowest round / the fastest",
    }[experiment.view]


def _value(experiment: Experiment, summary: Summary, case: str, name: str, figure: str) -> float | None:
    if experiment.view == "partner":
        if name + BOUND not in summary.results.names:
            return None
        return Summary(summary.results, name + BOUND).cell(case, name, figure).ratio
    cell = summary.cell(case, name, figure)
    if not cell.ok:
        return None
    if experiment.view == "ratio":
        return cell.ratio
    values = summary.values(case, name, figure)
    timed = [value for number, value in values.items() if number > 0] or list(values.values())
    if experiment.view == "spread":
        return max(timed) / min(timed) if min(timed) > 0 else None
    if experiment.view == "speedup":
        program, _, threads = case.rpartition("/")
        fewest = min(int(one.rpartition("/")[2]) for one in summary.results.cases if one.rpartition("/")[0] == program)
        first = summary.cell(f"{program}/{fewest}", summary.baseline, figure)
        return first.value / cell.value if first.ok and cell.value else None
    if experiment.over:
        under = summary.values(case, name, experiment.over)
        return median(values[number] / under[number] for number in values if under.get(number)) if any(under.values()) else None
    return cell.value
