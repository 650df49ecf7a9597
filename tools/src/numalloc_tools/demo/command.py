"""`numalloc demo`: rounds of one program under each allocator in turn."""

import platform
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from numalloc_tools.allocators.beside import chosen
from numalloc_tools.checks import require_folder, require_least
from numalloc_tools.completion import one_of
from numalloc_tools.demo import lab, python, redis, report, sqlite
from numalloc_tools.demo.measurement import Run
from numalloc_tools.machine import memory
from numalloc_tools.problem import Problem
from numalloc_tools.progress import bar_on

PROGRAMS = {module.NAME: module for module in (redis, python, sqlite)}
ROUNDS = 5
LAB_NODES = 8
TABLE_WIDTH = 110  # narrower, and the figures are cut


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    in_lab: Annotated[bool, typer.Option("--lab", help="Instead, count where pages lie in a virtual machine with many nodes.")] = False,
    nodes: Annotated[int, typer.Option(help="Nodes of that machine, 2 to 32.")] = LAB_NODES,
    program: Annotated[
        str, typer.Option(help=f"The program to run: {', '.join(PROGRAMS)}.", autocompletion=one_of(*PROGRAMS))
    ] = redis.NAME,
    rounds: Annotated[int, typer.Option(help="How often each allocator has its turn.")] = ROUNDS,
    requests: Annotated[Optional[int], typer.Option(help="Work of one run: requests of each kind, documents or rows.")] = None,
    library: Annotated[Optional[Path], typer.Option(help="The libnumalloc.so to show; else build/release's.")] = None,
    allocator: Annotated[
        Optional[list[str]], typer.Option(help="Another library to compare with. Repeatable.", metavar="NAME=PATH")
    ] = None,
    json_file: Annotated[Optional[Path], typer.Option("--json", help="Write every round's figures to this file.", metavar="FILE")] = None,
) -> None:
    """Run a real program under glibc's malloc and under numalloc, side by side.

    Shows throughput, peak and settled memory, and how much of it lies on which node. With --lab: in a virtual
    machine of eight nodes, which of a program's pages are on the node of the thread that uses them. Exits with 1 if
    the program fails under one of the allocators, with 2 if something is missing or misspelt.
    """
    require_folder(json_file, "--json")
    terminal = Console()
    terminal.width = max(terminal.width, TABLE_WIDTH)
    if in_lab:
        sys.exit(lab.run(nodes, library, json_file, terminal))
    if program not in PROGRAMS:
        raise Problem(f"--program: '{program}' is unknown; accepted: {', '.join(PROGRAMS)}")
    module = PROGRAMS[program]
    require_least(rounds, "--rounds")
    requests = module.REQUESTS if requests is None else requests
    require_least(requests, "--requests", 100)
    allocators = chosen(module.program(), library, allocator or [])
    runs: list[Run] = []
    with bar_on(terminal) as progress:
        task = progress.add_task(program, total=rounds * len(allocators))
        for number in range(1, rounds + 1):
            # Each round begins with another one, so that none always follows the same neighbour.
            for place in range(len(allocators)):
                one = allocators[(place + number - 1) % len(allocators)]
                progress.update(task, description=f"{program} under {one.name}, round {number}")
                report.say_step(terminal, f"round {number} of {rounds}: {program} under {one.name}")
                with tempfile.TemporaryDirectory(prefix="numalloc-demo-") as folder:
                    runs.append(module.run(one, number, requests, Path(folder)))
                progress.advance(task)
    names = [one.name for one in allocators]
    nodes = memory.online_nodes()
    if json_file:
        facts = {
            "program": program,
            "requests": requests,
            "rounds": rounds,
            "allocators": {one.name: str(one.library or "") for one in allocators},
            "kernel": platform.release(),
            "machine": platform.machine(),
            "nodes": nodes,
        }
        report.write_json(json_file, runs, facts)
    report.print_table(terminal, runs, names, f"{program}: {module.ABOUT.format(requests=requests)}", nodes)
