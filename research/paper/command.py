"""`research paper`: chooses experiments, runs what they need, and writes tables, JSON and pictures."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Optional

import typer
from numalloc_tools.checks import require_least
from numalloc_tools.guest import vm
from numalloc_tools.machine.brief import facts
from numalloc_tools.preload import our_library
from numalloc_tools.problem import Problem
from rich.console import Console

from research.paper import runs, table
from research.paper.table import Call, Experiment

_INTERRUPTED = 130


def register(app: typer.Typer) -> None:
    app.command("paper")(paper)


def paper(
    wanted: Annotated[
        Optional[list[str]],
        typer.Argument(
            help="Experiments, such as 000-figure-3 or figure-3; a paper's number, such as 002; or all.",
            metavar="FIGURE|TABLE|all...",
            show_default=False,
        ),
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="Show the experiments: what each runs, what the paper says, what is shown here.")
    ] = False,
    output: Annotated[
        Path, typer.Option(help="Folder for results, tables and pictures. What is there already is not run again.", metavar="FOLDER")
    ] = Path("paper"),
    scale: Annotated[Optional[float], typer.Option(help="Work of a run, times each program's own.")] = None,
    sizes: Annotated[bool, typer.Option("--paper", help="The papers' sizes, where programs know them.")] = False,
    rounds: Annotated[Optional[int], typer.Option(help="Rounds whose time counts; else 5.")] = None,
    names: Annotated[
        Optional[str], typer.Option("--allocators", help="As in numalloc bench; for experiments that compare allocators.", metavar="NAMES")
    ] = None,
    cpus: Annotated[Optional[int], typer.Option(help="As many threads as the paper has CPUs; else those of this machine.")] = None,
    library: Annotated[Optional[Path], typer.Option(help="The libnumalloc.so to measure; else build/release's.")] = None,
    dry: Annotated[bool, typer.Option("--dry-run", help="Only show the command lines.")] = False,
) -> None:
    """Repeat the papers' figures and tables, and show each beside what the paper says.

    Every run is kept in FOLDER/runs: interrupt it when you like, and the same command goes on with the run that was
    cut off. FOLDER/papers.md, papers.json and a picture for each experiment are written again each time.
    """
    calls, experiments = table.load()
    chosen = table.selected(experiments, wanted or ["all"])
    machine = facts()
    terminal = Console()
    if show_list:
        _show(terminal, chosen, calls, machine["nodes"])
        return
    if not wanted:
        raise Problem("no experiment is named; accepted: all, or some of those that --list shows")
    if scale is not None and not scale > 0:
        raise Problem(f"--scale: {scale:g} is too little; accepted: more than 0, such as 0.5")
    for flag, number in (("--rounds", rounds), ("--cpus", cpus)):
        require_least(number, flag)
    ours = our_library(library).absolute()
    how = runs.How(ours, output.absolute(), cpus or len(os.sched_getaffinity(0)), scale, rounds, names, sizes)
    needed = [calls[name] for name in dict.fromkeys(name for one in chosen for name in one.runs)]
    if dry:
        for call in needed:
            print("research" if call.tool == "figures" else "numalloc", *runs.words(call, how), "# is done" if runs.done(call, how) else "")
        return
    try:
        how.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem(f"--output: {output} cannot be made ({error.strerror}); accepted: a folder") from None
    vm.end_in_order_on_signals()
    troubles: dict[str, str] = {}
    status = 0
    try:
        for number, call in enumerate(needed, 1):
            terminal.print(f"{number} of {len(needed)}: {call.name}{' is done' if runs.done(call, how) else ''}", highlight=False)
            if trouble := runs.run(call, how):
                troubles[call.name], status = trouble, 1
                terminal.print(f"{call.name}: {trouble}", highlight=False, markup=False)
    except KeyboardInterrupt:
        status = _INTERRUPTED
    from research.paper import page  # here: matplotlib takes longer to load than most commands run

    page.write(chosen, calls, how, machine, troubles)
    terminal.print(f"{how.output}/papers.md and papers.json are written", highlight=False, markup=False)
    if status:
        sys.exit(status)


def _show(terminal: Console, chosen: list[Experiment], calls: dict[str, Call], nodes: int) -> None:
    for one in chosen:
        terminal.print(f"[bold]{one.id}[/bold] {one.title}", highlight=False)
        lines = [f"of {one.source}", *(f"runs: {calls[name].tool} {' '.join(calls[name].words)}" for name in one.runs)]
        lines += [f"the paper: {one.said}", *([f"its figures: {json.dumps(one.paper)}"] if one.paper else [])]
        lines += [f"{'here' if nodes == 1 else 'on one node'}: {one.one_node}"]
        for line in lines:
            terminal.print(f"    {line}", highlight=False, markup=False, soft_wrap=True)
