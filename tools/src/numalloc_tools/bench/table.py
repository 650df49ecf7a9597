"""The results as tables for a terminal."""

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from numalloc_tools.allocators import shown
from numalloc_tools.bench.results import CPU, FULLEST, MEMORY, REMOTE, TIME, Cell, Results, Summary

_FIRST_COLUMN, _CELL, _GAP = 24, 9, 2  # characters
_TELLING = 0.02  # a ratio closer to 1 has no colour
_RATIOS = {TIME: "time", CPU: "processor time of the whole process", MEMORY: "peak resident set"}
_SHARES = {REMOTE: "remote pages, %", FULLEST: "pages on the fullest node, %"}


def print_tables(console: Console, results: Results, baseline: str) -> None:
    summary = Summary(results, baseline)
    for figure, title in _RATIOS.items():
        _print(console, summary, figure, f"{title}, relative to {baseline}; lower is better")
    for figure, title in _SHARES.items():
        _print(console, summary, figure, f"{title}; lower is better")
    _print_failures(console, summary)
    rounds = len({run.round for run in results.runs if run.round > 0})
    if not results.cases_with(TIME):
        console.print(f"Medians of {rounds} rounds.", highlight=False)
    elif rounds:
        console.print(
            f"Medians of each round's own ratio over {rounds} interleaved rounds, ± half the range of the value itself.", highlight=False
        )
    else:
        console.print("Only the warm-up was run: the noise is unknown.")


def _print(console: Console, summary: Summary, figure: str, title: str) -> None:
    """Splits the allocators into tables of the terminal's width."""
    names = summary.results.names
    if not summary.results.cases_with(figure):
        return
    at_once = max(1, (console.width - _FIRST_COLUMN) // (max(_CELL, *(len(shown(name)) for name in names)) + _GAP))
    complete = summary.completed_by_all(figure)
    for first in range(0, len(names), at_once):
        _print_some(console, summary, figure, title, names[first : first + at_once], complete)


def _print_some(console: Console, summary: Summary, figure: str, title: str, names: list[str], complete: list[str]) -> None:
    table = Table(box=SIMPLE, title=escape(title), title_justify="left", title_style="bold")
    table.add_column("program/threads", no_wrap=True)
    for name in names:
        table.add_column(escape(shown(name)), justify="right", no_wrap=True)
    for case in summary.results.cases_with(figure):
        table.add_row(escape(case), *(_text(summary.cell(case, name, figure), name == summary.baseline, figure) for name in names))
    if figure in _SHARES:
        console.print(table)
        return
    means = [summary.geometric_mean(name, complete, figure) for name in names]
    table.add_section()
    table.add_row(f"geometric mean of {len(complete)}", *(f"[bold]{mean:.3f}[/bold]" if mean else "-" for mean in means))
    console.print(table)


def _text(cell: Cell, is_baseline: bool, figure: str) -> str:
    if not cell.ok:
        return f"[yellow]{cell.status}[/yellow]"
    if figure in _SHARES:
        return f"{cell.value:.2f}"
    if is_baseline:
        return f"{cell.value:.2f} s" if figure != MEMORY else f"{cell.value / 2**20:,.0f} MiB"
    if cell.ratio is None:
        return "?"
    text = f"{cell.ratio:.2f}" + (f" [dim]±{100 * cell.spread:2.0f}%[/dim]" if cell.rounds > 1 and figure != MEMORY else "")
    if abs(cell.ratio - 1) < _TELLING:
        return text
    return f"[green]{text}[/green]" if cell.ratio < 1 else f"[red]{text}[/red]"


def _print_failures(console: Console, summary: Summary) -> None:
    """Each reason once, with its programs and allocators."""
    reasons: dict[str, list[str]] = {}
    for name in summary.results.names:
        for case in summary.results.cases:
            cell = summary.cell(case, name)
            if cell.reason:
                reasons.setdefault(cell.reason, []).append(f"{case} under {name}")
    for reason, where in reasons.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        console.print(f"{where[0]}{more}: {reason}", highlight=False, markup=False)
