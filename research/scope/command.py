"""`research scope`: a program under one or more allocators in a machine of many nodes, counted and modelled."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Optional

import typer
from numalloc_tools import allocators
from numalloc_tools.checks import require_folder
from numalloc_tools.guest import values, vm
from numalloc_tools.guest.pack import environment_of
from numalloc_tools.lab.options import PROGRAM, Environment
from numalloc_tools.preload import our_library
from numalloc_tools.problem import Problem
from rich.console import Console

from research.scope import hardware, settings
from research.scope.settings import WINDOWS, Settings

MACHINE = "The machine"
COUNTED = "What is counted"
COMPARED = "What is compared"
TOLD = "What is told"
THREADS = "{threads}"


def register(app: typer.Typer) -> None:
    app.command("scope", context_settings={"allow_interspersed_args": False}, no_args_is_help=True)(scope)


def scope(
    command: Annotated[
        Optional[list[str]],
        typer.Argument(
            help=f"The program and its arguments; {THREADS} in them stands for the number that --threads has in turn.",
            metavar="COMMAND [ARGS]...",
            show_default=False,
        ),
    ] = None,
    preset: Annotated[
        str, typer.Option(help=f"The real machine that is modelled: {', '.join(hardware.PRESETS)}.", rich_help_panel=MACHINE)
    ] = hardware.STANDARD,
    machine_file: Annotated[
        Optional[Path],
        typer.Option(
            "--machine", help="Another machine, as a file like those that --show-preset prints.", metavar="FILE", rich_help_panel=MACHINE
        ),
    ] = None,
    nodes: Annotated[
        Optional[int], typer.Option(help="NUMA nodes; else as many as the machine has.", show_default=False, rich_help_panel=MACHINE)
    ] = None,
    nodes_per_package: Annotated[
        Optional[int],
        typer.Option(
            help="Nodes that a processor is divided into (AMD's NPS); else as the machine has it.",
            show_default=False,
            rich_help_panel=MACHINE,
        ),
    ] = None,
    cpus_per_node: Annotated[
        str, typer.Option(help="CPUs of each node that are there: one value, or one for each node.", rich_help_panel=MACHINE)
    ] = "2",
    memory_per_node: Annotated[str, typer.Option(help="Memory of each node.", rich_help_panel=MACHINE)] = "512M",
    in_proportion: Annotated[
        bool,
        typer.Option(
            "--in-proportion",
            help="Last-level caches and bandwidths shrink as the CPUs of a node do: a small machine stands for the whole one with all its CPUs at work.",
            rich_help_panel=MACHINE,
        ),
    ] = False,
    changes: Annotated[
        Optional[list[str]],
        typer.Option(
            "--set",
            help="A cache or TLB of another size: l2=2M:16, llc=4M, tlb.l2=2048:8. Repeatable.",
            metavar="NAME=SIZE[:WAYS]",
            rich_help_panel=MACHINE,
        ),
    ] = None,
    parallelism: Annotated[
        Optional[float],
        typer.Option(help="Misses that a CPU has under way at once; else the machine's.", show_default=False, rich_help_panel=MACHINE),
    ] = None,
    thp: Annotated[str, typer.Option(help="Transparent huge pages: always, madvise or never.", rich_help_panel=MACHINE)] = "madvise",
    autonuma: Annotated[str, typer.Option(help="Automatic NUMA balancing: on or off.", rich_help_panel=MACHINE)] = "off",
    window: Annotated[
        str,
        typer.Option(
            help="From when to when: markers (of programs that have them, such as those of bench/), main (from its start to the program's exit) or whole (with loading).",
            rich_help_panel=COUNTED,
        ),
    ] = "main",
    sample: Annotated[
        int, typer.Option(help="Watch one in N sets of the caches: faster, for long runs.", metavar="N", rich_help_panel=COUNTED)
    ] = 1,
    objects: Annotated[
        bool,
        typer.Option(
            "--objects",
            help="Watch the allocator's calls: which objects share a line, and what its code fetches of objects and of its own data.",
            rich_help_panel=COUNTED,
        ),
    ] = False,
    children: Annotated[
        bool,
        typer.Option(
            "--children", help="Count the processes that the program forks, until they start another program.", rich_help_panel=COUNTED
        ),
    ] = False,
    kernel: Annotated[
        bool,
        typer.Option(
            "--kernel",
            help="Count what the kernel does for the program too: page faults, system calls and interrupts.",
            rich_help_panel=COUNTED,
        ),
    ] = False,
    stacks: Annotated[
        bool, typer.Option("--stacks", help="Sample the stacks of what fetches lines from other nodes.", rich_help_panel=COUNTED)
    ] = False,
    compare: Annotated[
        str,
        typer.Option(
            help=f"Allocators, one run each: some of {', '.join(allocators.NAMES)}; with {allocators.BOUND} behind a name, its threads are bound.",
            metavar="NAMES",
            rich_help_panel=COMPARED,
        ),
    ] = allocators.OURS,
    allocator: Annotated[
        Optional[list[str]], typer.Option(help="Another library to compare. Repeatable.", metavar="NAME=PATH", rich_help_panel=COMPARED)
    ] = None,
    library: Annotated[
        Optional[Path], typer.Option(help="The libnumalloc.so to count; else build/release's.", rich_help_panel=COMPARED)
    ] = None,
    threads: Annotated[
        str,
        typer.Option(
            help=f"Runs with these numbers of threads, put in place of {THREADS}: 1,2,4,8,16.",
            metavar="N,N",
            show_default=False,
            rich_help_panel=COMPARED,
        ),
    ] = "",
    env: Environment = None,
    file: Annotated[
        Optional[list[str]], typer.Option(help="A file or folder to take along. Repeatable.", metavar="PATH", rich_help_panel=PROGRAM)
    ] = None,
    timeout: Annotated[int, typer.Option(help="Seconds after which a run is stopped.", metavar="SECONDS", rich_help_panel=PROGRAM)] = 3600,
    host_rounds: Annotated[
        Optional[int],
        typer.Option(
            "--host",
            help="Run it on this machine too, in ROUNDS interleaved rounds and under callgrind: whether instructions and the order of the allocators agree. With --window whole.",
            metavar="ROUNDS",
            show_default=False,
            rich_help_panel=TOLD,
        ),
    ] = None,
    json_file: Annotated[
        Optional[Path], typer.Option("--json", help="Write everything that was counted and modelled.", metavar="FILE", rich_help_panel=TOLD)
    ] = None,
    html: Annotated[
        Optional[Path],
        typer.Option(help="Write a page with matrices, bars, curves and the hottest code.", metavar="FILE", rich_help_panel=TOLD),
    ] = None,
    folded: Annotated[
        Optional[Path],
        typer.Option(
            help="Write these stacks, a line each, as flame graphs are made of. With --stacks.", metavar="FILE", rich_help_panel=TOLD
        ),
    ] = None,
    show_preset: Annotated[
        bool,
        typer.Option(
            "--show-preset", help="Print the preset's file, which says where its figures are from, and run nothing.", rich_help_panel=TOLD
        ),
    ] = False,
) -> None:
    """Count what a program would do to the memory of a machine with many nodes, and model the time.

    The program runs in the lab's virtual machine under an emulator that follows every memory access through caches
    and TLBs of the machine that --preset names. Counts are exact for that machine; every time is modelled. Exits with 1
    if a run failed.
    """
    if show_preset:
        print(hardware.text_of(preset), end="")
        return
    if not command:
        raise Problem("no program is named; accepted: research scope [OPTIONS] -- COMMAND [ARGS]...")
    # Here: numpy takes longer to load than most commands run, and asks for what a strict seccomp filter forbids.
    from research.scope import host, measure, tables
    from research.scope.results import Results, Run

    target = settings.target(
        preset, machine_file, nodes, nodes_per_package, cpus_per_node, memory_per_node, changes or [], parallelism, in_proportion
    )
    settings.check_sample(target.hardware, sample)
    counted = replace(_counted(window, sample, thp, autonuma, timeout), objects=objects, kernel=kernel, children=children, stacks=stacks)
    numbers = thread_numbers(threads, command)
    if folded and not stacks:
        raise Problem("--folded: no stacks are sampled; accepted: --stacks with it")
    for path, flag in ((json_file, "--json"), (html, "--html"), (folded, "--folded")):
        require_folder(path, flag)
    terminal = Console()
    terminal.width = max(terminal.width, tables.WIDTH)
    names = [word.strip() for word in compare.split(",") if word.strip()]
    others = allocators.given(allocator or [])
    chosen = allocators.chosen([*names, *others], our_library(library), others, terminal.print)
    for one in chosen:
        if one.missing:
            raise Problem(f"--compare: {one.name}: {one.missing}")
    environment = environment_of(env or [], [])
    if host_rounds is not None:
        _check_host(host_rounds, window, numbers, environment)
        host.local_command(command)
    vm.end_in_order_on_signals()
    kept = {**counted.as_json(), "cpus_per_node": cpus_per_node, "in_proportion": in_proportion}
    results = Results(target.hardware, command, kept)
    wanted = [measure.Wanted(one, number, [word.replace(THREADS, str(number)) for word in command]) for number in numbers for one in chosen]

    def told(_: int, run: Run) -> None:
        said = run.reason or f"{run.raw['seconds_of_host']:.0f} s"
        terminal.print(f"{run.name}: {said}", markup=False, highlight=False, soft_wrap=True)

    results.runs = measure.runs(target, counted, wanted, environment, file or [], told)
    # Files first: who reads the tables may have enough of them.
    if json_file:
        results.write(json_file)
    if folded:
        from research.scope.stacks import folded as lines

        folded.write_text(lines([(run.name, run.raw["stacks"]) for run in results.good]))
    if html and results.good:
        from research.scope.page import page  # here: matplotlib takes its time too

        html.write_text(page(results, results.allocators[0]))
    tables.show(terminal, results)
    if host_rounds is not None and len(results.good) == len(chosen):
        host.show(terminal, host.beside(results.runs, chosen, command, host_rounds, terminal.print))
    sys.exit(0 if len(results.good) == len(results.runs) else 1)


def _counted(window: str, sample: int, thp: str, autonuma: str, timeout: int) -> Settings:
    values.choice(window, WINDOWS, "--window")
    values.choice(thp, ("always", "madvise", "never"), "--thp")
    values.choice(autonuma, ("on", "off"), "--autonuma")
    if timeout < 1:
        raise Problem(f"--timeout: {timeout} is not a time; accepted: whole seconds, 1 or more")
    return Settings(window, sample, thp, autonuma == "on", timeout)


def _check_host(rounds: int, window: str, numbers: list[int], environment: dict[str, str]) -> None:
    if rounds < 1:
        raise Problem(f"--host: {rounds} rounds are too few; accepted: 1 or more")
    if window != "whole" or numbers != [0] or environment:
        raise Problem("--host: callgrind counts a whole run as it is; accepted: --window whole, no --threads and no --env")


def thread_numbers(text: str, command: list[str]) -> list[int]:
    """0 stands for "as the command says"."""
    named = any(THREADS in word for word in command)
    if bool(text) != named:
        raise Problem(f"--threads: {THREADS} is {'not ' if text else ''}in the command; accepted: both, or neither")
    if not text:
        return [0]
    numbers = [values.count(word, "--threads") for word in text.split(",")]
    if 0 in numbers:
        raise Problem("--threads: 0 is too few; accepted: 1 or more")
    return list(dict.fromkeys(numbers))
