"""The part of `numalloc demo` with many nodes: in a virtual machine, where the pages of each allocator lie."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from numalloc_tools.allocators import BASELINE, OURS, Allocator
from numalloc_tools.allocators.beside import with_named
from numalloc_tools.allocators.found import installed
from numalloc_tools.demo.steps import Steps
from numalloc_tools.guest import accelerator, vm
from numalloc_tools.guest.machine import Machine
from numalloc_tools.guest.scenarios import Cell, Scenario, Switches, measure
from numalloc_tools.preload import our_library

PEER = "jemalloc"  # redis-server brings it
SWITCHES = Switches("madvise", autonuma=False)  # as most distributions have it, and without a balancer that moves pages later
BOOT_SECONDS = RUN_SECONDS = 120  # an idle machine takes 5 for each; beyond this the emulator hangs
BAR = 20  # characters
BLOCKS = " ▁▂▃▄▅▆▇█"
SCENARIOS = {  # the one that tells most comes first
    Scenario(
        "generations", "64-4K", "free", "other", rounds=3
    ): "Threads end; threads on other nodes free their blocks and go on (64 B to 4 KiB)",
    Scenario("generations", "4K-64K", "free", "other", rounds=3): "The same with blocks of 4 to 64 KiB",
    Scenario("listing1", "256", "free", "other", rounds=2): "Threads write blocks of 256 B, which threads on other nodes free",
}


def allocators(library: Path | None, others: list[str]) -> list[Allocator]:
    peer = installed(PEER)
    peers = [Allocator(PEER, (peer,))] if peer else []
    return with_named([Allocator(BASELINE), *peers, Allocator(OURS, (our_library(library),))], others)


def run(machine: Machine, chosen: list[Allocator], kernel: Path | None, terminal: Console) -> list[Cell]:
    """Prints each result as it comes."""
    accelerator.qemu(machine.architecture)  # before a kernel is fetched in vain
    vm.end_in_order_on_signals()
    nodes = len(machine.nodes)
    terminal.print(
        f"A virtual machine of {nodes} memory nodes, with 2 threads on each. Its emulator has no near or far memory, so "
        "pages are counted, and nothing is timed. A page is remote if it is not on the node of the thread that writes it.\n",
        highlight=False,
    )
    wanted = [(scenario, allocator) for scenario in SCENARIOS for allocator in chosen]
    width = max(len(allocator.name) for allocator in chosen)
    cells: list[Cell] = []
    with Steps(terminal, len(wanted), "preparing and booting the machine") as steps:

        def note(cell: Cell) -> None:
            if not cells:
                steps.print(f"{'':{width + 4}}{'remote pages':{BAR + 10}}pages on each node, and on the fullest")
            if not cells or cell.scenario != cells[-1].scenario:
                steps.print(SCENARIOS[cell.scenario])
            cells.append(cell)
            steps.print(line(cell, width))
            steps.end()
            if len(cells) < len(wanted):
                steps.begin(f"run {len(cells) + 1} of {len(wanted)}, under {wanted[len(cells)][1].name}")

        findings = measure(machine, wanted, SWITCHES, note, RUN_SECONDS, kernel, BOOT_SECONDS)
    for finding in findings:
        terminal.print(finding, markup=False)
    return cells


def passed(cells: list[Cell], nodes: int) -> bool:
    """No page of numalloc's is remote, and no run of it failed."""
    return all(cell.passed(nodes) for cell in cells if cell.allocator == OURS)


def line(cell: Cell, width: int) -> Text:
    name = f"  {cell.allocator:{width}}  "
    bold = "bold" if cell.allocator == OURS else ""
    if cell.failure:
        return Text.assemble((name, bold), (cell.failure, "red"))
    shown = (bar(cell.remote_percent), "red" if cell.remote else "green")
    return Text.assemble((name, bold), shown, f"   {spread(cell.spread)} {100 * cell.fullest_share():4.0f} %")


def bar(percent: float) -> str:
    filled = round(percent * BAR / 100) or (1 if percent else 0)
    return f"{'█' * filled}{'·' * (BAR - filled)} {percent:4.0f} %"


def spread(pages: tuple[int, ...]) -> str:
    """One character for each node; the fullest has a full block."""
    most = max(pages, default=0)
    return "".join(BLOCKS[max(1, round(n * (len(BLOCKS) - 1) / most)) if n else 0] for n in pages) if most else ""
