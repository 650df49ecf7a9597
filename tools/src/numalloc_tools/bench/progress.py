"""Runs a plan with a progress bar, and keeps the results so far whatever happens."""

import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from numalloc_tools.bench.results import Results
from numalloc_tools.bench.schedule import Plan, Schedule
from numalloc_tools.progress import clock, interruptible

_WRITE_EVERY = 5.0  # seconds


def run_plan(plan: Plan, results: Results, path: Path, terminal: Console) -> bool:
    """Fills and writes `results`. False after Ctrl-C."""
    begun = written = time.monotonic()
    with (
        interruptible(),
        Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}"),
            console=terminal,
            transient=True,
        ) as progress,
    ):
        task = progress.add_task("starting", total=0, left="")

        def announce(case, allocator, number: int) -> None:
            place = f"round {number} of {plan.rounds}" if number else "warm-up"
            progress.update(
                task,
                completed=schedule.done,
                total=schedule.total,
                left=clock(schedule.left()) + " left",
                description=f"{place}: {case.name} under {allocator.name}",
            )

        schedule = Schedule(plan, announce)
        try:
            for run in schedule:
                results.runs.append(run)
                results.seconds = time.monotonic() - begun
                if time.monotonic() - written > _WRITE_EVERY:
                    results.write(path)
                    written = time.monotonic()
            results.complete = True
        except KeyboardInterrupt:
            progress.console.print("interrupted; the results until now are kept")
        finally:
            results.write(path)
    if schedule.stopped_early:
        rounds = max(run.round for run in results.runs)
        terminal.print(f"there was time for {rounds} of {plan.rounds} rounds", highlight=False)
    return results.complete
