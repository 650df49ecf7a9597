"""`numalloc demo --lab`: the same programs under glibc's malloc and under numalloc in a virtual machine of many nodes."""

from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from numalloc_tools.allocators import BASELINE, OURS
from numalloc_tools.demo import report
from numalloc_tools.guest import vm
from numalloc_tools.guest.allocators import named
from numalloc_tools.guest.machine import build_machine
from numalloc_tools.guest.scenarios import Cell, Scenario, Switches, generations, listing1, measure
from numalloc_tools.progress import bar_on

SWITCHES = Switches("madvise", autonuma=False)  # as most distributions have it, and without a balancer that moves pages later
BAR = 20  # characters
BLOCKS = " ▁▂▃▄▅▆▇█"
WHAT = {
    "listing1": "each thread writes its blocks; {freed} frees them",
    "generations": "threads end, and others of another node go on with their blocks",
}
FREED = {"own": "it", "left": "its neighbour", "other": "a thread of another node"}


def scenarios() -> list[Scenario]:
    """Where any allocator does well, where frees come from elsewhere, and where threads come and go."""
    own, other = listing1(["1M"], ["own"], ["free"], rounds=2), listing1(["256"], ["other"], ["free"], rounds=2)
    return [*own, *other, *generations(["free"], count=3)[:2]]


def run(nodes: int, library: Path | None, json_file: Path | None, terminal: Console) -> int:
    """The exit status: 1 where numalloc has a remote page or a program fails."""
    machine = build_machine(nodes, "2", "512M", "full")
    chosen = [named(BASELINE, None, machine.architecture), named(OURS, library, machine.architecture)]
    wanted = [(scenario, allocator) for scenario in scenarios() for allocator in chosen]
    vm.end_in_order_on_signals()
    terminal.print(
        f"A virtual machine of {nodes} nodes boots: 2 CPUs and 512 MiB each, a Linux kernel, and {len(wanted)} runs of programs."
    )
    terminal.print("The emulator is slow and has no near or far memory, so pages are counted, and nothing is timed.\n")
    cells: list[Cell] = []
    with bar_on(terminal) as progress:
        task = progress.add_task("booting", total=len(wanted))

        def note(cell: Cell) -> None:
            cells.append(cell)
            text = f"{cell.allocator}, {title(cell.scenario)}: {cell.failure or f'{cell.remote_percent:.0f} % of the pages are remote'}"
            progress.update(task, advance=1, description=cell.scenario.name)
            report.say_step(terminal, text)

        findings = measure(machine, wanted, SWITCHES, note, timeout=300)
    for finding in findings:
        terminal.print(finding, markup=False)
    _print(terminal, cells, nodes)
    if json_file:
        report.write_lab_json(json_file, cells, nodes)
    ours = [cell for cell in cells if cell.allocator == OURS]
    return 0 if len(cells) == len(wanted) and all(cell.passed(nodes) for cell in ours) else 1


def title(scenario: Scenario) -> str:
    size = scenario.sizes if scenario.program == "generations" else f"{scenario.sizes}{'' if scenario.sizes[-1] in 'KM' else ' B'}"
    return f"blocks of {size}: {WHAT[scenario.program].format(freed=FREED[scenario.freed_by])}"


def _print(terminal: Console, cells: list[Cell], nodes: int) -> None:
    table = Table(box=SIMPLE, title=f"Where the pages are, on {nodes} nodes with 2 threads each", title_justify="left")
    table.add_column("program", max_width=44)
    table.add_column("allocator")
    table.add_column("remote pages", no_wrap=True)
    table.add_column(f"pages on each node, 0 to {nodes - 1}", no_wrap=True)
    for scenario in dict.fromkeys(cell.scenario for cell in cells):
        for number, cell in enumerate(one for one in cells if one.scenario == scenario):
            name = f"[bold]{cell.allocator}[/bold]" if cell.allocator == OURS else cell.allocator
            shown = cell.failure or bar(cell.remote_percent)
            table.add_row("" if number else title(scenario), name, shown, spread(cell.spread), end_section=bool(number))
    terminal.print(table)
    terminal.print(
        "A page is remote if it is not on the node of the thread that writes it. Full blocks: the fullest node has that many pages."
    )


def bar(percent: float) -> str:
    filled = round(percent * BAR / 100) or (1 if percent else 0)
    return f"{'█' * filled}{'·' * (BAR - filled)} {percent:4.0f} %"


def spread(pages: tuple[int, ...]) -> str:
    most = max(pages, default=0)
    return " ".join(BLOCKS[max(1, round(n * (len(BLOCKS) - 1) / most)) if n else 0] for n in pages) if most else ""
