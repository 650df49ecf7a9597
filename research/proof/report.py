"""The proof as people read it: a table on the terminal, a bar chart, and JSON with every figure."""

import json
from pathlib import Path

from numalloc_tools.guest.scenarios import Cell, Scenario, Switches
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

_FREED = {"own": "its writer", "left": "the right neighbour", "other": "a thread of another node"}


def write_json(path: Path, cells: list[Cell], facts: dict) -> None:
    head = json.dumps(facts, indent=1).removesuffix("\n}")
    lines = ",\n".join(json.dumps(cell.as_dict()) for cell in cells)  # one a cell
    path.write_text(f'{head},\n "cells": [\n{lines}\n]}}\n')


def write_markdown(path: Path, cells: list[Cell], allocators: list[str], nodes: int) -> None:
    """One table: a row a scenario, and in each field a value for each setting of the kernel's switches."""
    switches = list(dict.fromkeys(cell.switches for cell in cells))
    found = {(cell.scenario, cell.switches, cell.allocator): cell for cell in cells}

    def field(scenario: Scenario, allocator: str) -> str:
        values = [_plain(found[scenario, one, allocator]) for one in switches]
        return values[0] if len(set(values)) == 1 else " / ".join(values)

    shares = [f"{100 * max(cell.fullest_share() for cell in cells if cell.allocator == allocator):.1f}" for allocator in allocators]
    lines = [
        f"Percent of pages that are not on their writer's node; {nodes} nodes; {' / '.join(map(str, switches))}.",
        "",
        f"| program, sizes, who frees, threads | {' | '.join(allocators)} |",
        "|---|" + "---|" * len(allocators),
        *(
            f"| {scenario.title} | {' | '.join(field(scenario, allocator) for allocator in allocators)} |"
            for scenario in dict.fromkeys(cell.scenario for cell in cells)
        ),
        f"| fullest node's share, worst row (fair is {100 / nodes:.3g}) | {' | '.join(shares)} |",
    ]
    path.write_text("\n".join(lines) + "\n")


def _plain(cell: Cell) -> str:
    if cell.failure:
        return "failed"
    return f"{cell.remote_percent:.0f}" if cell.remote_percent >= 9.5 or cell.remote == 0 else f"{cell.remote_percent:.1g}"


def print_tables(console: Console, cells: list[Cell], allocators: list[str], nodes: int) -> None:
    by_switches: dict[Switches, list[Cell]] = {}
    for cell in cells:
        by_switches.setdefault(cell.switches, []).append(cell)
    for switches, group in by_switches.items():
        table = Table(title=f"Pages not on their writer's node, percent: {nodes} nodes, {switches}", title_justify="left", box=SIMPLE)
        table.add_column("program, sizes, who frees, threads", no_wrap=True)
        for allocator in allocators:
            table.add_column(allocator, justify="right")
        rows: dict = {}
        for cell in group:
            rows.setdefault(cell.scenario, {})[cell.allocator] = cell
        for scenario, row in rows.items():
            table.add_row(
                scenario.title,
                *(_remote(row.get(allocator)) for allocator in allocators),
            )
        console.print(table)
    _print_summary(console, cells, allocators, nodes)
    for cell in cells:
        if cell.failure:
            console.print(f"{cell.allocator}, {cell.scenario.name}, {cell.switches}: {cell.failure}", markup=False)


def _remote(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    if cell.failure:
        return "[red]failed[/red]"
    colour = "red" if cell.remote else "green"
    return f"[{colour}]{_plain(cell)}[/{colour}]"


def _print_summary(console: Console, cells: list[Cell], allocators: list[str], nodes: int) -> None:
    table = Table(title="Over all of it", title_justify="left", box=SIMPLE)
    table.add_column("")
    for allocator in allocators:
        table.add_column(allocator, justify="right")
    rows: dict[str, list[str]] = {
        "cells with remote pages": [],
        "remote pages, percent of all": [],
        f"share of the fullest node, worst cell (fair is {100 / nodes:.3g} %)": [],
        "accumulated write time, s": [],
    }
    for allocator in allocators:
        good = [cell for cell in cells if cell.allocator == allocator and not cell.failure]
        pages = sum(cell.pages for cell in good)
        remote = sum(cell.remote for cell in good)
        share = max((cell.fullest_share() for cell in good), default=0)
        values = (
            f"{sum(cell.remote > 0 for cell in good)} of {len(good)}",
            f"{100 * remote / pages if pages else 0:.3g}",
            f"{100 * share:.3g}",
            f"{sum(cell.write_seconds for cell in good):.1f}",
        )
        for row, value in zip(rows.values(), values):
            row.append(value)
    for heading, row in rows.items():
        table.add_row(heading, *row)
    console.print(table)


def draw(path: Path, cells: list[Cell], allocators: list[str], nodes: int) -> None:
    """A panel for each program, way to free and way to place threads; for each size a bar an
    allocator: its worst value under the kernel's switches that were tried."""
    from numalloc_tools.style import plt, save  # half a second: only when something is drawn

    panels: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        scenario = cell.scenario
        panels.setdefault((scenario.program, scenario.freed_by, scenario.threads_are), []).append(cell)
    rows = list(dict.fromkeys(key[:2] for key in panels))
    columns = list(dict.fromkeys(key[2] for key in panels))
    figure, axes = plt.subplots(len(rows), len(columns), figsize=(6 * len(columns), 2.6 * len(rows)), squeeze=False, sharey=True)
    for y, (program, freed_by) in enumerate(rows):
        for x, threads_are in enumerate(columns):
            _draw_panel(axes[y][x], panels.get((program, freed_by, threads_are), []), allocators)
            axes[y][x].set_title(f"{program}, freed by {_FREED[freed_by]}, threads {threads_are}", fontsize=9)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=len(allocators), frameon=False)
    figure.supylabel("pages not on their writer's node, percent", fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / (2.6 * len(rows))))
    save(figure, path)
    plt.close(figure)


def _draw_panel(axes, cells: list[Cell], allocators: list[str]) -> None:
    sizes = list(dict.fromkeys(cell.scenario.sizes for cell in cells))
    width = 0.8 / len(allocators)
    for index, allocator in enumerate(allocators):
        worst = [
            max((c.remote_percent for c in cells if c.allocator == allocator and c.scenario.sizes == size), default=0) for size in sizes
        ]
        places = [position + (index - (len(allocators) - 1) / 2) * width for position in range(len(sizes))]
        bars = axes.bar(places, worst, width, label=allocator)
        # A bar of no height is the point of it all, and must not look like a missing one.
        axes.bar_label(bars, [f"{value:.0f}" if value == 0 or value >= 0.5 else "<1" for value in worst], fontsize=6)
    axes.set_xticks(range(len(sizes)), sizes, fontsize=8)
    axes.set_ylim(0, 110)
