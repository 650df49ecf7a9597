"""`research prove`: the share of remote pages, of numalloc and of its peers, as a report."""

import sys
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer
from numalloc_tools.allocators import OURS, PACKAGED
from numalloc_tools.checks import require_least
from numalloc_tools.guest import architecture, kernel, values, vm
from numalloc_tools.guest.allocators import named
from numalloc_tools.guest.machine import Machine, build_machine
from numalloc_tools.guest.scenarios import BLOCKS, FREED_BY, ROUNDS, THREADS_ARE, Cell, Switches, generations, listing1, measure
from numalloc_tools.problem import Problem
from numalloc_tools.progress import bar_on
from rich.console import Console

from research.proof import report, versions
from research.proof.store import Store

THP = ("always", "madvise", "never")
AUTONUMA = ("off", "on")
TABLE_WIDTH = 110  # narrower, and the names of the allocators are cut


def register(app: typer.Typer) -> None:
    app.command("prove")(prove)


def prove(
    nodes: Annotated[int, typer.Option(help="NUMA nodes, 2 to 32.")] = 8,
    cpus_per_node: Annotated[str, typer.Option(help="CPUs of each node; one thread runs for each.")] = "2",
    memory_per_node: Annotated[str, typer.Option(help="Memory of each node.")] = "512M",
    distance: Annotated[str, typer.Option(help="full, twogroups, ladder, or a file with a matrix.")] = "twogroups",
    arch: Annotated[
        str,
        typer.Option(
            help=f"The processor: {' or '.join(architecture.NAMES)}; this machine's unless you say otherwise.", show_default=False
        ),
    ] = "",
    page_size: Annotated[str, typer.Option(help="Of Debian's kernel: 4K, or 16K with aarch64.")] = "4K",
    kernel_file: Annotated[Path | None, typer.Option("--kernel", help="Boot this kernel instead of Debian's.", metavar="FILE")] = None,
    names: Annotated[str, typer.Option("--allocators", help=f"Which of {', '.join(PACKAGED)}.")] = ",".join(PACKAGED),
    library: Annotated[Path | None, typer.Option(help="The libnumalloc.so to prove; else build/release's.")] = None,
    sizes: Annotated[str, typer.Option(help=f"Block sizes of listing 1: some of {', '.join(BLOCKS)}.")] = ",".join(BLOCKS),
    freed_by: Annotated[str, typer.Option(help="Who frees: some of own, left, other.")] = ",".join(FREED_BY),
    threads: Annotated[str, typer.Option(help="Threads placed by the allocator (free), by the program (pinned), or both.")] = ",".join(
        THREADS_ARE
    ),
    thp: Annotated[str, typer.Option(help="Transparent huge pages: some of always, madvise, never.")] = "always,never",
    autonuma: Annotated[str, typer.Option(help="Automatic NUMA balancing: off, on, or both.")] = "off,on",
    rounds: Annotated[int, typer.Option(help="Measured rounds of listing 1.")] = ROUNDS,
    only: Annotated[str, typer.Option(help="Only scenarios of these names, such as 'generations-*'.", metavar="PATTERN")] = "*",
    output: Annotated[
        Path,
        typer.Option(
            help="Folder for cells.jsonl and the report: proof.json, proof.md, proof.svg. What cells.jsonl has of the same machine and allocators is not measured again."
        ),
    ] = Path("proof"),
    timeout: Annotated[int, typer.Option(help="Seconds for each run of a program.")] = 900,
) -> None:
    """Run JArena's listing 1 and thread generations under each allocator; count remote pages.

    Exits with 1 if numalloc is among them and has a remote page anywhere, or fills nodes unevenly. Each cell is
    kept at once: interrupt it when you like, and the same command goes on.
    """
    machine = build_machine(nodes, cpus_per_node, memory_per_node, distance, arch=arch)
    chosen = [named(name, library, machine.architecture) for name in _some(names, PACKAGED, "--allocators")]
    require_least(rounds, "--rounds")
    if timeout < 1:
        raise Problem(f"--timeout: {timeout} is not a time; accepted: whole seconds, 1 or more")
    placed = _some(threads, THREADS_ARE, "--threads")
    matrix = listing1(_some(sizes, tuple(BLOCKS), "--sizes"), _some(freed_by, FREED_BY, "--freed-by"), placed, rounds)
    matrix += generations(placed)
    names_of_all = [scenario.name for scenario in matrix]
    matrix = [scenario for scenario in matrix if fnmatchcase(scenario.name, only)]
    if not matrix:
        raise Problem(f"--only: '{only}' fits no scenario; accepted: names such as {names_of_all[0]} and {names_of_all[-1]}")
    switches = [
        Switches(pages, balancing == "on") for pages in _some(thp, THP, "--thp") for balancing in _some(autonuma, AUTONUMA, "--autonuma")
    ]
    vm.end_in_order_on_signals()
    asked_for = {"nodes": nodes, "cpus_per_node": cpus_per_node, "memory_per_node": memory_per_node, "distance": distance}
    found_versions = {allocator.name: versions.of_allocator(allocator, machine.architecture) for allocator in chosen}
    booted = kernel.image(kernel_file, machine.architecture, page_size)
    store = Store(output, {**asked_for, "kernel": versions.of_kernel(booted)}, found_versions)
    terminal = Console()
    terminal.width = max(terminal.width, TABLE_WIDTH)
    plan = [(one, scenario, allocator) for one in switches for scenario in matrix for allocator in chosen]
    try:
        _measure_missing(machine, plan, store, timeout, terminal, booted)
    except (KeyboardInterrupt, SystemExit):
        kept = sum(store.has(scenario, one, allocator.name) for one, scenario, allocator in plan)
        print(f"numalloc: interrupted; {kept} of {len(plan)} cells are in {output}, and the same command goes on", file=sys.stderr)
        raise
    cells = [store.cells[scenario, one, allocator.name] for one, scenario, allocator in plan]
    ordered = [allocator.name for allocator in chosen]
    facts = {
        **asked_for,
        "kernel": versions.of_kernel(booted),
        "emulator": versions.of_qemu(machine.architecture),
        "allocators": found_versions,
        "date": f"{date.today():%Y-%m-%d}",
    }
    report.write_json(output / "proof.json", cells, facts)
    report.write_markdown(output / "proof.md", cells, ordered, nodes)
    report.draw(output / "proof.svg", cells, ordered, nodes)
    report.print_tables(terminal, cells, ordered, nodes)
    terminal.print(f"{output}/proof.json, proof.md and proof.svg are written")
    ours = [one for one in cells if one.allocator == OURS]
    sys.exit(0 if all(one.passed(nodes) for one in ours) else 1)


def _measure_missing(machine: Machine, plan: list, store: Store, timeout: int, terminal: Console, booted: Path) -> None:
    with bar_on(terminal, transient=False) as progress:
        task = progress.add_task("booting", total=len(plan))

        def note(cell: Cell) -> None:
            store.add(cell)
            progress.update(task, advance=1, description=f"{cell.allocator} {cell.scenario.name}")
            if not terminal.is_terminal:
                remote = cell.failure or f"{cell.remote} of {cell.pages} pages remote"
                terminal.print(f"{cell.switches}, {cell.allocator} {cell.scenario.name}: {remote}", markup=False, soft_wrap=True)

        for switches in dict.fromkeys(one for one, _, _ in plan):
            group = [(scenario, allocator) for one, scenario, allocator in plan if one == switches]
            missing = [(scenario, allocator) for scenario, allocator in group if not store.has(scenario, switches, allocator.name)]
            progress.update(task, advance=len(group) - len(missing), description="booting")
            for finding in measure(machine, missing, switches, note, timeout, booted):
                progress.console.print(f"{switches}: {finding}", markup=False)


def _some(text: str, accepted: tuple[str, ...], what: str) -> list[str]:
    return list(dict.fromkeys(values.choice(word.strip(), accepted, what) for word in text.split(",")))
