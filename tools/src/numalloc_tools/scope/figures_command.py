"""`numalloc lab figures`: the figures of the paper, counted and modelled, program by program."""

import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from numalloc_tools.bench import ablations, allocators, programs
from numalloc_tools.bench.allocators import Allocator
from numalloc_tools.lab import vm
from numalloc_tools.preload import our_library
from numalloc_tools.problem import Problem
from numalloc_tools.scope import hardware, scenarios, settings
from numalloc_tools.scope.scenarios import Scenario
from numalloc_tools.scope.settings import Settings, Target

GROUPS = ("compare", "binding", "mechanisms", "speedup")


def register(app: typer.Typer) -> None:
    app.command("figures")(run)


def run(
    output: Annotated[Path, typer.Option(help="Folder for every run, and for figures.md and a page for each program. What is there already is not run again.", metavar="FOLDER")] = Path("figures"),
    groups: Annotated[str, typer.Option(help=f"Some of {', '.join(GROUPS)}.", metavar="GROUPS")] = "compare",
    only: Annotated[str, typer.Option(help="Only programs of these names, such as 'larson*'.", metavar="PATTERN")] = "*",
    names: Annotated[str, typer.Option("--allocators", help="numalloc's peers.", metavar="NAMES")] = ",".join(scenarios.PEERS),
    library: Annotated[Optional[Path], typer.Option(help="The libnumalloc.so to count; else build/release's.")] = None,
    preset: Annotated[str, typer.Option(help=f"The real machine that is modelled: {', '.join(hardware.PRESETS)}.")] = hardware.STANDARD,
    cpus_per_node: Annotated[int, typer.Option(help="CPUs of each node; one thread runs for each.")] = 2,
    sweep_cpus_per_node: Annotated[int, typer.Option(help="CPUs of each node for the group speedup.")] = 16,
    whole: Annotated[bool, typer.Option("--whole-nodes", help="Last-level caches and bandwidths as the machine has them; else in proportion to the CPUs.")] = False,
    scale: Annotated[float, typer.Option(help="Times each program's work; less is faster, and more of it is what programs do but once.")] = 1.0,
    timeout: Annotated[int, typer.Option(help="Seconds for each run.")] = 3600,
) -> None:
    """Count the programs of bench/ under numalloc and its peers, and write the paper's figures 4 to 8.

    The groups: compare (each allocator as it comes), binding (peers with bound threads too), mechanisms (numalloc with
    one off or changed) and speedup (1 to 128 threads). It takes hours in all: every run is kept, and the same
    command goes on.
    """  # fmt: skip
    wanted = [word.strip() for word in groups.split(",") if word.strip()]
    for word in wanted:
        if word not in GROUPS:
            raise Problem(f"--groups: '{word}' is unknown; accepted: {', '.join(GROUPS)}")
    chosen = [one for one in scenarios.ALL if fnmatchcase(one.name, only)]
    if not chosen:
        raise Problem(f"--only: '{only}' fits no program; accepted: {', '.join(one.name for one in scenarios.ALL)}")
    if not scale > 0:
        raise Problem(f"--scale: {scale:g} is too little; accepted: more than 0, such as 0.5")
    if timeout < 1:
        raise Problem(f"--timeout: {timeout} is not a time; accepted: whole seconds, 1 or more")
    terminal = Console()
    ours = our_library(library)
    known = {one.name: one for one in programs.own(ours)}
    for one in chosen:
        if missing := known[one.program].missing:
            raise Problem(f"{one.program}: {missing}")
    peers = [word.strip() for word in names.split(",") if word.strip()]
    sets = _sets(wanted, peers, ours, terminal)
    # Here: numpy takes longer to load than most commands run, and asks for what a strict seccomp filter forbids.
    from numalloc_tools.scope.runner import Runner, write
    from numalloc_tools.scope.store import Store

    store = Store(output)
    vm.end_in_order_on_signals()
    counted = Settings(window="markers", timeout=timeout)
    small = {one.name: _target(preset, cpus_per_node, one, whole) for one in chosen}
    large = {one.name: _target(preset, sweep_cpus_per_node, one, whole) for one in chosen}
    found, swept = {}, {}
    try:
        for one in chosen:
            runner = Runner(store, counted, known[one.program].command, one, scale, terminal)
            compared = list({name.name: name for group in ("compare", "binding", "mechanisms") for name in sets[group]}.values())
            if compared:
                found[one.name] = runner.results(small[one.name], compared, [small[one.name].machine.cpus])
            if sets["speedup"] and one.name in scenarios.SWEPT:
                numbers = [number for number in scenarios.THREADS if number <= large[one.name].machine.cpus]
                swept[one.name] = runner.results(large[one.name], sets["speedup"], numbers)
    finally:
        write(output, found, swept, small, terminal)
    sys.exit(0 if all(len(one.good) == len(one.runs) for one in [*found.values(), *swept.values()]) else 1)


def _sets(wanted: list[str], peers: list[str], ours: Path, terminal: Console) -> dict[str, list[Allocator]]:
    plain = allocators.chosen([allocators.OURS, *peers], ours, {}, terminal.print)
    bound = allocators.chosen([f"{name}{allocators.BOUND}" for name in peers], ours, {}, terminal.print)
    for one in [*plain, *(bound if "binding" in wanted else [])]:
        if one.missing:
            raise Problem(f"--allocators: {one.name}: {one.missing}")
    return {
        "compare": plain if "compare" in wanted else [],
        "binding": [*plain, *bound] if "binding" in wanted else [],
        "mechanisms": [plain[0], *ablations.variants(plain[0])] if "mechanisms" in wanted else [],
        "speedup": plain if "speedup" in wanted else [],
    }


def _target(preset: str, cpus: int, scenario: Scenario, whole: bool) -> Target:
    return settings.target(preset, None, None, None, str(cpus), scenario.memory, [], None, not whole)
