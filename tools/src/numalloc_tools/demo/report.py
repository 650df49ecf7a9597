"""The comparison as people read it."""

from statistics import median

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from numalloc_tools.demo.measurement import CPU, MEMORY, NODES, THROUGHPUT, Figure, Run, Summary, summary

_ANY_WIDTH = 1000
_TELLING = 0.02  # a ratio nearer to 1 than this is not coloured


def print_heading(console: Console, program: str, nodes: int) -> None:
    if nodes == 1:
        means = "it has one memory node, so nothing is placed: compare time and memory only"
    else:
        means = f"it has {nodes} memory nodes: compare time, memory, and on which of them it lies"
    console.print(f"{program} on this machine; {means}.", highlight=False)


def print_table(console: Console, runs: list[Run], allocators: list[str], nodes: int) -> None:
    baseline = allocators[0]
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in allocators:
        table.add_column(escape(name), justify="right", no_wrap=True)
        if name != baseline:
            table.add_column(f"/ {escape(baseline)}", justify="right", no_wrap=True)
    for group in (THROUGHPUT, CPU, MEMORY, NODES) if nodes > 1 else (THROUGHPUT, CPU, MEMORY):
        figures = _figures(runs, group)
        table.add_row(f"[bold]{group}, {_unit(figures)}[/bold]" if figures else group)
        for figure in figures:
            cells = [f"  {figure.name}" + (f", {figure.unit}" if group == THROUGHPUT and _mixed(figures) else "")]
            for name in allocators:
                found = summary(runs, name, baseline, figure.name)
                cells.append(_value(found, figure))
                if name != baseline:
                    cells.append(_ratio(found, figure))
            table.add_row(*cells)
    if nodes > 1:
        table.add_row("  on the fullest, %", *_fullest_shares(runs, allocators))
    needed = console.measure(table, options=console.options.update_width(_ANY_WIDTH)).maximum
    console.width = max(console.width, needed)  # narrower, and figures would be cut
    console.print(table)
    rounds = len({run.round for run in runs})
    if rounds > 1:
        console.print(f"Medians of {rounds} rounds, ± half their range. Ratios are medians of the rounds' own ratios.", highlight=False)
    else:
        console.print("One round: nothing says how much of a difference is chance.")
    if nodes > 1:
        console.print(
            f"Nodes: means, by {runs[0].placed_by}; heap, stacks and anonymous mappings, no files.", markup=False, highlight=False
        )


def _fullest_shares(runs: list[Run], allocators: list[str]) -> list[str]:
    cells = []
    for name in allocators:
        shares: list[float] = []
        for run in runs:
            held: list[float] = [figure.value for figure in run.figures if figure.group == NODES]
            if run.allocator == name and any(held):
                shares.append(100 * max(held) / sum(held))
        cells += [f"{median(shares):.0f}     " if shares else "-", ""]
    return [cells[0], *cells[2:]]  # the baseline has no column of ratios


def _figures(runs: list[Run], group: str) -> list[Figure]:
    """One of each name, in the order of appearance; nodes by number."""
    found = {figure.name: figure for run in runs for figure in run.figures if figure.group == group}
    figures = list(found.values())
    return sorted(figures, key=lambda figure: int(figure.name.split()[1])) if group == NODES else figures


def _mixed(figures: list[Figure]) -> bool:
    return len({figure.unit for figure in figures}) > 1


def _unit(figures: list[Figure]) -> str:
    if figures[0].unit == "B":
        return "MiB"
    return "a second" if _mixed(figures) else figures[0].unit


def _value(found: Summary, figure: Figure) -> str:
    if figure.group == NODES:  # a program may choose another node in each round: only the mean adds up
        return f"{found.mean / 2**20:,.1f}     "
    scale, digits = {"B": (2**20, 1), "s": (1, 2)}.get(figure.unit, (1, 0))
    value = f"{found.median / scale:,.{digits}f}"
    return f"{value} [dim]±{found.spread:2.0f} %[/dim]"


def _ratio(found: Summary, figure: Figure) -> str:
    if figure.group == NODES:
        return ""
    if found.ratio is None:
        return "-"
    text = f"{found.ratio:.2f}"
    if abs(found.ratio - 1) < _TELLING:
        return text
    return f"[green]{text}[/green]" if (found.ratio > 1) == figure.more_is_better else f"[red]{text}[/red]"
