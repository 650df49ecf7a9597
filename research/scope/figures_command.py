"""`research figures`: the figures of the paper, counted and modelled, program by program."""

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Optional

import typer
from numalloc_tools import allocators, programs
from numalloc_tools.allocators import Allocator, ablations
from numalloc_tools.checks import require_folder, text_of
from numalloc_tools.guest import vm
from numalloc_tools.preload import our_library
from numalloc_tools.problem import Problem
from rich.console import Console

from research.scope import hardware, scenarios, settings
from research.scope.scenarios import Scenario
from research.scope.settings import Settings, Target

GROUPS = ("compare", "binding", "mechanisms", "speedup", "host")


def register(app: typer.Typer) -> None:
    app.command("figures")(run)


def run(
    output: Annotated[
        Path,
        typer.Option(
            help="Folder for every run, and for the figures and a page for each program. What is there already is not run again.",
            metavar="FOLDER",
        ),
    ] = Path("figures"),
    groups: Annotated[
        str,
        typer.Option(
            help=f"Some of {', '.join(GROUPS)}; speedup has {', '.join(scenarios.SWEPT)} alone, host {', '.join(one.name for one in scenarios.HOSTED)}.",
            metavar="GROUPS",
        ),
    ] = "compare",
    only: Annotated[str, typer.Option(help="Only programs of these names, such as 'larson*'.", metavar="PATTERN")] = "*",
    names: Annotated[str, typer.Option("--allocators", help="numalloc's peers.", metavar="NAMES")] = ",".join(scenarios.PEERS),
    library: Annotated[Optional[Path], typer.Option(help="The libnumalloc.so to count; else build/release's.")] = None,
    preset: Annotated[str, typer.Option(help=f"The real machine that is modelled: {', '.join(hardware.PRESETS)}.")] = hardware.STANDARD,
    cpus_per_node: Annotated[int, typer.Option(help="CPUs of each node; one thread runs for each.")] = 2,
    sweep_cpus_per_node: Annotated[int, typer.Option(help="CPUs of each node for the group speedup.")] = 16,
    whole: Annotated[
        bool,
        typer.Option("--whole-nodes", help="Last-level caches and bandwidths as the machine has them; else in proportion to the CPUs."),
    ] = False,
    scale: Annotated[
        float, typer.Option(help="Times each program's work; less is faster, and more of it is what programs do but once.")
    ] = 1.0,
    timeout: Annotated[int, typer.Option(help="Seconds for each run.")] = 3600,
    document: Annotated[
        Optional[Path],
        typer.Option(help="Where the text goes, with its pictures beside it; else into the folder.", metavar="FILE", show_default=False),
    ] = None,
    notes: Annotated[
        Optional[Path],
        typer.Option(
            help="Markdown that the text repeats at its head: why what is not as it should be.", metavar="FILE", show_default=False
        ),
    ] = None,
) -> None:
    """Count the programs of bench/ under numalloc and its peers, and write the paper's figures 4 to 8.

    The groups: compare (each allocator as it comes), binding (peers with bound threads too), mechanisms (numalloc with
    one off or changed), speedup (1 to 128 threads) and host (modelled beside measured on this machine, one node). It
    takes hours in all: every run is kept, and the same command goes on.
    """
    wanted = [word.strip() for word in groups.split(",") if word.strip()]
    for word in wanted:
        if word not in GROUPS:
            raise Problem(f"--groups: '{word}' is unknown; accepted: {', '.join(GROUPS)}")
    chosen = [one for one in scenarios.ALL if fnmatchcase(one.name, only)]
    if not chosen:
        raise Problem(f"--only: '{only}' fits no program; accepted: {', '.join(one.name for one in scenarios.ALL)}")
    if not scale > 0:
        raise Problem(f"--scale: {scale:g} is too little; accepted: more than 0, such as 0.5")
    require_folder(document, "--document")
    remarks = text_of(notes, "--notes")
    if timeout < 1:
        raise Problem(f"--timeout: {timeout} is not a time; accepted: whole seconds, 1 or more")
    terminal = Console()
    ours = our_library(library)
    known = {one.name: one for one in programs.own(ours)}
    for one in chosen:
        if missing := known[one.program].missing:
            raise Problem(f"{one.program}: {missing}")
    peers = [word.strip() for word in names.split(",") if word.strip()]
    if wanted == ["speedup"] and not any(one.name in scenarios.SWEPT for one in chosen):
        swept_ones = ", ".join(scenarios.SWEPT)
        raise Problem(f"--only: '{only}' fits no program that is swept; accepted with --groups speedup: {swept_ones}")
    small = {one.name: _target(preset, cpus_per_node, one, whole) for one in scenarios.ALL}
    large = {one.name: _target(preset, sweep_cpus_per_node, one, whole) for one in scenarios.ALL}
    sets = _sets(wanted, peers, ours, terminal)  # builds those that are missing, so all else is checked before
    # Here: numpy takes longer to load than most commands run, and asks for what a strict seccomp filter forbids.
    from research.scope.figures import Around
    from research.scope.runner import Runner, hosted, write
    from research.scope.store import Store

    store = Store(output)
    vm.end_in_order_on_signals()
    counted = Settings(window="markers", timeout=timeout)
    found: dict = {}
    swept: dict = {}
    beside: dict = {}
    fresh: set = set()

    def gather(one: Scenario, asked: bool) -> bool:
        """Takes what was kept of the program, and runs what else is asked for; whether all of that went well."""
        command = known[one.program].command
        runner = Runner(store, counted, command, one, scale, terminal)
        sweeper = Runner(store, counted, command, one, scale * scenarios.SWEPT.get(one.name, 1), terminal)
        numbers = [number for number in scenarios.THREADS if number <= large[one.name].machine.cpus]
        well = True
        for runs, results, target, threads, groups_of_it in (
            (runner, found, small[one.name], [small[one.name].machine.cpus], ("compare", "binding", "mechanisms")),
            (sweeper, swept, large[one.name], numbers if one.name in scenarios.SWEPT else [], ("speedup",)),
        ):
            gathered = runs.results(target, _together(sets, groups_of_it), threads, run_missing=False)
            if compared := _together(sets, [name for name in groups_of_it if asked and name in wanted]) if threads else []:
                ran = runs.results(target, compared, threads)
                well = well and len(ran.good) == len(ran.runs)
                anew = {run.name for run in ran.runs}
                gathered.runs = ran.runs + [run for run in gathered.runs if run.name not in anew]
            if gathered.runs:
                results[one.name] = gathered
            if runs.ran:
                fresh.add(one.name)
        return well

    def gather_host(one: Scenario, asked: bool) -> bool:
        # The least number of nodes that is modelled; only the first has CPUs, so that all is done on one.
        nodes = max(2, hardware.named(preset).nodes_per_package)
        cpus = ",".join([str(scenarios.HOST_THREADS), *["0"] * (nodes - 1)])
        target = settings.target(preset, None, nodes, None, cpus, one.memory, [], None, False)
        runner = Runner(store, replace(counted, window="whole"), known[one.program].command, one, scale, terminal)
        if rows := hosted(runner, store, target, sets["host"], asked):
            beside[one.name] = rows
        return bool(rows) or not asked

    well = True
    try:
        for one in scenarios.ALL:
            if not known[one.program].missing:
                gather(one, asked=False)
        for one in chosen:
            well = gather(one, asked=True) and well
        for one in scenarios.HOSTED:
            if not known[one.program].missing:
                well = gather_host(one, "host" in wanted and one.name in {which.name for which in chosen}) and well
    finally:
        around = Around(_made(sets["compare"], scale), remarks, beside)
        machines = next(iter(small.values())), next(iter(large.values()))
        write(output, found, swept, fresh, *machines, around, document, terminal)
    sys.exit(0 if well else 1)


def _sets(wanted: list[str], peers: list[str], ours: Path, terminal: Console) -> dict[str, list[Allocator]]:
    """The allocators of every group; of one that is not wanted only those that are at hand."""
    plain = allocators.chosen([allocators.OURS, *peers], ours, {}, terminal.print)
    plain[0] = replace(plain[0], version=_sources_of(ours))
    bound = allocators.chosen([f"{name}{allocators.BOUND}" for name in peers], ours, {}, terminal.print)
    for one in [*plain, *(bound if "binding" in wanted else [])]:
        if one.missing:
            raise Problem(f"--allocators: {one.name}: {one.missing}")
    try:
        mechanisms = ablations.compared(plain[0])
    except Problem:
        if "mechanisms" in wanted:
            raise
        mechanisms = [plain[0]]
    at_hand = [one for one in bound if not one.missing]
    return {"compare": plain, "binding": [*plain, *at_hand], "mechanisms": mechanisms, "speedup": plain, "host": plain}


def _sources_of(library: Path) -> str:
    """The last commit that changed what the library is made of: others must not have it counted again."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(library.parent), *words, "--", ":/src", ":/include"]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.stdout.strip()

    try:
        return git("log", "-1", "--format=%h") + ("-dirty" if git("status", "--porcelain") else "")
    except OSError:  # no git
        return ""


def _made(compared: list[Allocator], scale: float) -> str:
    parts = ", ".join(f"{name} {part:g} of it" for name, part in scenarios.SWEPT.items() if part != 1)
    peers = ", ".join(
        one.version if one.version.startswith(one.name) else f"{one.name} {one.version}".strip()
        for one in compared
        if one.name != allocators.OURS
    )
    return (
        f"Made by `research figures` on {date.today():%-d %B %Y}, of numalloc's sources of "
        f"{compared[0].version or 'an unknown commit'}, at scale {scale:g} (for the speedup {parts}), one run each. Beside "
        f"it: {peers}."
    )


def _together(sets: dict[str, list[Allocator]], groups: Iterable[str]) -> list[Allocator]:
    return list({one.name: one for group in groups for one in sets[group]}.values())


def _target(preset: str, cpus: int, scenario: Scenario, whole: bool) -> Target:
    return settings.target(preset, None, None, None, str(cpus), scenario.memory, [], None, not whole)
