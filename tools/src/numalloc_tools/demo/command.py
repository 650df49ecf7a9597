"""`numalloc demo`: many nodes in a virtual machine, then a real program on this one."""

import json
import platform
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Optional

import typer
from rich.console import Console

from numalloc_tools.allocators import Allocator
from numalloc_tools.allocators.beside import chosen
from numalloc_tools.checks import require_folder, require_least
from numalloc_tools.completion import one_of
from numalloc_tools.demo import lab, python, redis, report, rounds, sqlite
from numalloc_tools.guest import kernel
from numalloc_tools.guest.machine import build_machine
from numalloc_tools.machine import memory
from numalloc_tools.problem import Problem

PROGRAMS = {module.NAME: module for module in (redis, python, sqlite)}
ROUNDS = 3
LAB_NODES = 8
WIDTH = 100
NO_MACHINE = 125  # exit status


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    only_lab: Annotated[bool, typer.Option("--lab", help="Only the virtual machine with many nodes (and --program, if given).")] = False,
    nodes: Annotated[Optional[int], typer.Option(help=f"Nodes of that machine, 2 to 32; else {LAB_NODES}.")] = None,
    kernel_file: Annotated[
        Optional[Path], typer.Option("--kernel", help="That machine boots this kernel instead of Debian's.", metavar="FILE")
    ] = None,
    program: Annotated[
        Optional[str],
        typer.Option(
            help=f"Only this program on this machine (and --lab, if given): {', '.join(PROGRAMS)}; else {redis.NAME} after the machine.",
            autocompletion=one_of(*PROGRAMS),
        ),
    ] = None,
    turns: Annotated[
        Optional[int], typer.Option("--rounds", help=f"How often each allocator runs the program; else {ROUNDS} times.")
    ] = None,
    requests: Annotated[Optional[int], typer.Option(help="Work of one run: requests of each kind, documents or rows.")] = None,
    library: Annotated[
        Optional[Path], typer.Option(help="The libnumalloc.so to show. Default: the one built here or above, or installed.")
    ] = None,
    allocator: Annotated[
        Optional[list[str]], typer.Option(help="Another library to compare with. Repeatable.", metavar="NAME=PATH")
    ] = None,
    json_file: Annotated[Optional[Path], typer.Option("--json", help="Write all figures to this file.", metavar="FILE")] = None,
) -> int:
    """Show numalloc beside glibc's malloc and jemalloc: many nodes in a virtual machine, then redis on this one.

    The virtual machine shows which of a program's pages are on the node of the thread that uses them. On this
    machine: throughput, CPU time, memory, and with several nodes how much of it lies on which. Exits with 1 if
    numalloc has a remote page or the program fails under one of the allocators, with 2 if something is missing or
    misspelt, and with 125 if the virtual machine does not run; without --lab the program runs nevertheless.
    """
    require_folder(json_file, "--json")
    in_lab, here = only_lab or not program, bool(program) or not only_lab
    _refuse_unless(
        in_lab, {"--nodes": nodes, "--kernel": kernel_file}, "is for the virtual machine; accepted: with --lab, or without --program"
    )
    _refuse_unless(
        here, {"--rounds": turns, "--requests": requests}, "is for the program on this machine; accepted: with --program, or without --lab"
    )
    if program is not None and program not in PROGRAMS:
        raise Problem(f"--program: '{program}' is unknown; accepted: {', '.join(PROGRAMS)}")
    require_least(turns, "--rounds")
    require_least(requests, "--requests", 100)
    module = PROGRAMS[program or redis.NAME]
    # Before anything takes long, all is found that may be missing or misspelt.
    machine = build_machine(LAB_NODES if nodes is None else nodes, "2", "512M", "full")
    booted = kernel.image(kernel_file) if kernel_file else None
    in_machine = lab.allocators(library, allocator or []) if in_lab else []
    on_this = chosen(module.program(), library, allocator or []) if here else []

    terminal = Console()
    terminal.width = min(terminal.width, WIDTH) if terminal.is_terminal else WIDTH
    results: dict[str, Any] = {}
    status = 0
    if in_lab:
        try:
            cells = lab.run(machine, in_machine, booted, terminal)
        except Problem as problem:
            reason = f"the virtual machine does not run: {str(problem).splitlines()[0]}"
            if not here:
                raise Problem(reason, NO_MACHINE) from None
            terminal.print(f"{reason}\n", markup=False, soft_wrap=True)
            status = NO_MACHINE
        else:
            status = 0 if lab.passed(cells, len(machine.nodes)) else 1
            results["lab"] = {"nodes": len(machine.nodes), "cells": [cell.as_dict() for cell in cells]}
            _write(json_file, results)  # the program may fail
            terminal.print()
    if here:
        results |= _show_program(module, on_this, turns or ROUNDS, requests or module.REQUESTS, terminal)
        _write(json_file, results)
    return status


def _refuse_unless(used: bool, options: dict[str, object], reason: str) -> None:
    for flag, value in options.items():
        if value is not None and not used:
            raise Problem(f"{flag}: {reason}")


def _show_program(module: ModuleType, allocators: list[Allocator], turns: int, requests: int, terminal: Console) -> dict[str, Any]:
    nodes = memory.online_nodes()
    report.print_heading(terminal, module.NAME, nodes)
    terminal.print(module.ABOUT.format(requests=requests), highlight=False)
    runs = rounds.run(module, allocators, turns, requests, terminal)
    report.print_table(terminal, runs, [one.name for one in allocators], nodes)
    return {
        "program": module.NAME,
        "requests": requests,
        "rounds": turns,
        "allocators": {one.name: str(one.library or "") for one in allocators},
        "kernel": platform.release(),
        "machine": platform.machine(),
        "nodes": nodes,
        "runs": [run.as_dict() for run in runs],
    }


def _write(path: Path | None, results: dict[str, Any]) -> None:
    if path:
        path.write_text(json.dumps(results, indent=1) + "\n")
