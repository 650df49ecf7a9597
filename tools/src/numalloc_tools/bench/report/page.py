"""The results as one page: figures, tables, what did not complete, and the facts of the run."""

from pathlib import Path

from numalloc_tools import html_page
from numalloc_tools.allocators import OURS, shown
from numalloc_tools.bench.results import CPU, MEMORY, NOT_RUN, TIME, Cell, Summary
from numalloc_tools.html_page import Drawn, escaped, section

_STRONGEST = 0.5  # a ratio this far from 1 has the full colour


def page(summary: Summary, drawn: list[Drawn]) -> str:
    results = summary.results
    tables = (
        []
        if not results.cases_with(TIME)
        else [
            _table(summary, TIME, "Time in numbers", "time", lambda value: f"{value:.3f} s"),
            _table(summary, MEMORY, "Memory in numbers", "memory-table", lambda value: f"{value / 2**20:,.1f} MiB", totals=True),
        ]
    )
    contents = [(figure.name, figure.heading) for figure in drawn]
    if tables:
        contents += [("time-table", "Time in numbers"), ("memory-table", "Memory in numbers")]
    if any(run.reason for run in results.runs):
        contents.append(("failures", "What did not complete"))
    sections = [section(figure.name, figure.heading, figure.words, f'<div class="figure">{figure.svg}</div>') for figure in drawn]
    incomplete = "" if results.complete else '<p class="warning">The run was interrupted: some rounds are missing.</p>'
    return html_page.page(
        "bench",
        "beside its peers",
        _subtitle(summary),
        f'{incomplete}\n  <div class="cards">{"".join(_cards(summary))}</div>',
        contents,
        ("\n".join(sections), "\n".join(tables), _failures(summary), _facts(summary)),
    )


def _subtitle(summary: Summary) -> str:
    results, machine = summary.results, summary.results.machine
    rounds = len({run.round for run in results.runs if run.round > 0})
    tried = summary.allocators_with(TIME, results.names) or results.names
    allocators = len([name for name in tried if ":" not in name])
    return (
        f"{len({run.program for run in results.runs})} programs, {allocators} allocators, {rounds} interleaved rounds; "
        f"{machine['cpus']} CPUs, {machine['memory_bytes'] / 2**30:.0f} GiB, {machine['nodes']} memory node{'s' * (machine['nodes'] > 1)}"
    )


def _cards(summary: Summary) -> list[str]:
    """The result in a few numbers."""
    names = [name for name in summary.results.names if ":" not in name]
    cards = []
    for figure, what in ((TIME, "time"), (CPU, "processor time"), (MEMORY, "peak memory")):
        complete = summary.completed_by_all(figure, names, summary.results.standard_cases(figure))
        means = {name: mean for name in names if (mean := summary.geometric_mean(name, complete, figure))}
        if OURS not in means or len(means) < 2:
            continue
        place = sorted(means, key=means.__getitem__).index(OURS) + 1
        others = {name: mean for name, mean in means.items() if name != OURS}
        best = min(others, key=others.__getitem__)
        cards.append(
            f'<div class="card"><div class="number">{means[OURS]:.3f}</div><div>{what} of {OURS} relative to {escaped(summary.baseline)}, '
            f"geometric mean of {len(complete)}</div></div>"
            f'<div class="card"><div class="number">{place} <small>of {len(means)}</small></div><div>in {what}; '
            f"best other: {escaped(best)} at {others[best]:.3f}</div></div>"
        )
    return cards


def _table(summary: Summary, figure: str, heading: str, name: str, show, totals: bool = False) -> str:
    names = summary.allocators_with(figure, summary.results.names)
    head = "".join(f"<th>{escaped(shown(one))}</th>" for one in names)
    rows = []
    for case in summary.results.cases_with(figure):
        cells = "".join(_cell(summary.cell(case, one, figure), show, _more(summary, case, one) if totals else "") for one in names)
        rows.append(f"<tr><th>{escaped(case)}</th>{cells}</tr>")
    complete = summary.completed_by_all(figure)
    means = [summary.geometric_mean(one, complete, figure) for one in names]
    cells = "".join(f"<td{_shade(mean)}>{mean:.3f}</td>" if mean else "<td>-</td>" for mean in means)
    rows.append(f'<tr class="sum"><th>geometric mean of {len(complete)}</th>{cells}</tr>')
    if totals:
        sums = []
        for one in names:
            values = [summary.cell(case, one, figure) for case in complete]
            sums.append(f"<td>{show(sum(cell.value for cell in values))}</td>" if values and all(c.ok for c in values) else "<td>-</td>")
        rows.append(f'<tr class="sum"><th>total of {len(complete)}</th>{"".join(sums)}</tr>')
    words = f"The median, and below it the ratio to {escaped(summary.baseline)} and half the range over the rounds. Green is better."
    if totals:
        words += " Settled: resident memory after the program's frees; huge pages: their peak; both in MiB."
    return (
        f'<section id="{name if totals else name + "-table"}"><h2>{heading}</h2><p class="words">{words}</p>'
        f'<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div></section>'
    )


def _more(summary: Summary, case: str, allocator: str) -> str:
    """The other memory figures."""
    parts = []
    for figure, what in (("settled_bytes", "settled"), ("huge_bytes", "huge pages")):
        cell = summary.cell(case, allocator, figure)
        if cell.ok and (cell.value >= 1 << 20 or figure == "settled_bytes"):
            parts.append(f"<br><small>{what} {cell.value / 2**20:,.1f}</small>")
    return "".join(parts)


def _cell(cell: Cell, show, more: str) -> str:
    if not cell.ok:
        if cell.status == NOT_RUN:
            return "<td></td>"
        return f'<td class="failed" title="{escaped(cell.reason)}">{escaped(cell.status)}</td>'
    ratio = f"{cell.ratio:.2f} " if cell.ratio else ""
    return f"<td{_shade(cell.ratio)}>{show(cell.value)}<br><small>{ratio}±{100 * cell.spread:.0f}%</small>{more}</td>"


def _shade(ratio: float | None) -> str:
    if not ratio or ratio == 1:
        return ""
    strength = min(1.0, abs(ratio - 1) / _STRONGEST)
    hue = 145 if ratio < 1 else 12
    return f' style="background:hsl({hue} 70% 50% / {0.45 * strength:.2f})"'


def _failures(summary: Summary) -> str:
    reasons: dict[tuple[str, str], list[str]] = {}
    for run in summary.results.runs:
        if run.reason:
            where = f"{run.case} under {run.allocator}"
            if where not in reasons.setdefault((run.status, run.reason), []):
                reasons[run.status, run.reason].append(where)
    if not reasons:
        return ""
    rows = "".join(
        f"<tr><td class='failed'>{escaped(status)}</td><td>{escaped(reason)}</td><td>{escaped(', '.join(where))}</td></tr>"
        for (status, reason), where in reasons.items()
    )
    return f'<section id="failures"><h2>What did not complete</h2><div class="scroll"><table class="text">{rows}</table></div></section>'


def _facts(summary: Summary) -> str:
    results = summary.results
    facts = {**results.machine, **results.settings, "seconds": f"{results.seconds:.0f}"}
    rows = "".join(f"<tr><th>{escaped(name.replace('_', ' '))}</th><td>{escaped(_plain(value))}</td></tr>" for name, value in facts.items())
    versions = "".join(
        f"<tr><th>{escaped(one['name'])}</th><td>{escaped(one['version'])}</td><td>{escaped(', '.join(Path(p).name for p in one['libraries']))}</td></tr>"
        for one in results.allocators
    )
    described = "".join(
        f"<tr><th>{escaped(one['name'])}</th><td>{escaped(one['description'])}</td><td>{escaped(one['source'])}</td></tr>"
        for one in results.programs
    )
    return (
        f'<details><summary>Machine and settings</summary><table class="text">{rows}</table></details>'
        f'<details><summary>Allocators</summary><table class="text">{versions}</table></details>'
        f'<details><summary>Programs</summary><table class="text">{described}</table></details>'
    )


def _plain(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
