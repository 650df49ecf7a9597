"""Zero remote pages: JArena's listing 1 and thread generations. On eight nodes over block sizes, who
frees, who places threads, huge pages and AutoNUMA; on two and on 32 nodes a smaller choice."""

from functools import cache
from pathlib import Path

import pytest
from numalloc_tools.allocators import Allocator
from numalloc_tools.guest.machine import build_machine
from numalloc_tools.guest.scenarios import BLOCKS, FREED_BY, ROUNDS, THREADS_ARE, Switches, generations, listing1, measure
from proof import SMOKE, SOME_BYTES, check

# The listing as published, five rounds of 64 MiB a thread, under one setting of the kernel; one shorter
# round under the others.
PUBLISHED = listing1(["1M"], ["left"], list(THREADS_ARE), ROUNDS)
ALL_WAYS = listing1(list(BLOCKS), list(FREED_BY), list(THREADS_ARE), 1, SOME_BYTES)
FULL = [one for one in ALL_WAYS if one.name not in {published.name for published in PUBLISHED}] + PUBLISHED + generations(list(THREADS_ARE))
ONE_ROUND = ALL_WAYS + generations(list(THREADS_ARE), 4)

GROUPS = {
    "8-nodes": (8, "512M", Switches("never", False), FULL),
    "8-nodes-huge-pages": (8, "512M", Switches("always", False), ONE_ROUND),
    "8-nodes-autonuma": (8, "512M", Switches("never", True), ONE_ROUND),
    "8-nodes-huge-pages-autonuma": (8, "512M", Switches("always", True), ONE_ROUND),
    "2-nodes": (2, "512M", Switches("madvise", True), SMOKE),
    "32-nodes": (32, "256M", Switches("madvise", True), SMOKE),
}


@cache
def cells_of(group: str, library: str):
    nodes, memory, switches, matrix = GROUPS[group]
    machine = build_machine(nodes, "2", memory, "full")
    cells = []
    findings = measure(machine, [(one, Allocator("numalloc", (Path(library),))) for one in matrix], switches, cells.append)
    return {cell.scenario.name: cell for cell in cells}, findings


@pytest.mark.parametrize(
    ("group", "scenario"),
    [pytest.param(group, one.name, id=f"{group}-{one.name}") for group, plan in GROUPS.items() for one in plan[3]],
)
def test_no_page_is_remote(library, group, scenario):
    cells, findings = cells_of(group, library)
    cell = cells[scenario]
    check(cell, GROUPS[group][0], findings)
