"""Every allocator in four numbers: what the table and the picture at the head of a report show."""

from dataclasses import dataclass

from numalloc_tools.bench.results import CPU, MEMORY, REMOTE, TIME, Summary

_HEADINGS = {TIME: "time", CPU: "processor time", MEMORY: "peak memory", REMOTE: "remote pages"}


@dataclass(frozen=True)
class Column:
    figure: str
    values: dict[str, float | None]  # by allocator; remote pages in percent, the others over the baseline's
    programs: int

    @property
    def heading(self) -> str:
        return _HEADINGS[self.figure]


def columns(summary: Summary, names: list[str]) -> list[Column]:
    """Over the programs that all completed; of the remote pages, that all who went into the lab completed."""
    found = []
    for figure in (TIME, CPU, MEMORY):
        cases = summary.completed_by_all(figure, names, summary.results.standard_cases(figure))
        found.append(Column(figure, {name: summary.geometric_mean(name, cases, figure) for name in names}, len(cases)))
    return [*found, _remote(summary, names)]


def _remote(summary: Summary, names: list[str]) -> Column:
    """A plain mean of the shares: most of numalloc's are 0, which has no logarithm."""
    cases = summary.results.cases_with(REMOTE)
    inside = summary.compared_throughout(REMOTE, names, cases)
    cells = {name: [summary.cell(case, name, REMOTE) for case in cases] for name in inside}
    whole = [place for place in range(len(cases)) if all(row[place].ok for row in cells.values())] if inside else []
    means = {name: sum(row[place].value for place in whole) / len(whole) for name, row in cells.items() if whole}
    return Column(REMOTE, {name: means.get(name) for name in names}, len(whole))


def ordered(found: list[Column], names: list[str]) -> list[str]:
    """The fastest first; who was not timed, last."""
    times = found[0].values
    return sorted(names, key=lambda name: times[name] or float("inf"))
