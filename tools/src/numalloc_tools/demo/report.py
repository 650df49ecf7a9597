"""The comparison as people read it, and as programs do."""

import json
from pathlib import Path
from statistics import median

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from numalloc_tools.demo.measurement import CPU, MEMORY, NODES, THROUGHPUT, Figure, Run, Summary, summary
from numalloc_tools.guest.scenarios import Cell

_TELLING = 0.02  # a ratio nearer to 1 than this is not coloured


def say_step(console: Console, text: str) -> None:
    """A step of a run, where no progress bar can say it."""
    if not console.is_terminal:
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def write_lab_json(path: Path, cells: list[Cell], nodes: int) -> None:
    path.write_text(json.dumps({"nodes": nodes, "cells": [cell.as_dict() for cell in cells]}, indent=1) + "\n")


def print_table(console: Console, runs: list[Run], allocators: list[str], title: str, nodes: int) -> None:
    baseline = allocators[0]
    console.print(title, highlight=False)
    table = Table(box=SIMPLE)
    table.add_column("", no_wrap=True)
    for name in allocators:
        table.add_column(name, justify="right", no_wrap=True)
        if name != baseline:
            table.add_column(f"/ {baseline}", justify="right", no_wrap=True, min_width=7)
    for group in (THROUGHPUT, CPU, MEMORY, NODES):
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
        table.add_row("  share of the fullest node, %", *_fullest_shares(runs, allocators))
    console.print(table)
    rounds = len({run.round for run in runs})
    if rounds > 1:
        console.print(
            f"Medians of {rounds} interleaved rounds, ± half their range; ratios are medians of each round's ratio; nodes are means.",
            highlight=False,
        )
    else:
        console.print("One round: nothing says how much of a difference is chance.")
    console.print(f"Where the memory lies: by {runs[0].placed_by}; heap, stacks and anonymous mappings, no files.", markup=False)
    if nodes == 1:
        console.print(
            "This machine has one memory node, so no memory can be far away here; `numalloc lab` brings a virtual machine with many."
        )


def write_json(path: Path, runs: list[Run], facts: dict) -> None:
    content = [
        {
            "allocator": run.allocator,
            "round": run.round,
            "placed_by": run.placed_by,
            "figures": {figure.name: {"value": figure.value, "unit": figure.unit} for figure in run.figures},
        }
        for run in runs
    ]
    path.write_text(json.dumps({**facts, "runs": content}, indent=1) + "\n")


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
