"""Cells of a proof outlive its interruption; what does not count is measured again."""

from numalloc_tools.allocators import Allocator
from numalloc_tools.guest import batch
from numalloc_tools.guest.machine import build_machine
from numalloc_tools.guest.scenarios import Cell, Scenario, Switches, listing1, measure

from research.proof.store import Store

SCENARIO = Scenario("listing1", "1M", "free", "left", 5)
SWITCHES = Switches("always", True)
MACHINE = {"nodes": 8}
VERSIONS = {"numalloc": "one", "glibc": "2.36"}


def cell(allocator: str, **values) -> Cell:
    return Cell(SCENARIO, SWITCHES, allocator, **{"pages": 100, "remote": 3, "spread": (50, 50), "threads_on": (1, 1), **values})


def test_cells_come_back_as_they_were(tmp_path):
    Store(tmp_path / "new", MACHINE, VERSIONS).add(cell("glibc"))
    again = Store(tmp_path / "new", MACHINE, VERSIONS)
    assert again.has(SCENARIO, SWITCHES, "glibc")
    assert again.cells == {(SCENARIO, SWITCHES, "glibc"): cell("glibc")}


def test_another_machine_version_or_a_failure_is_measured_again(tmp_path):
    store = Store(tmp_path, MACHINE, VERSIONS)
    store.add(cell("numalloc"))
    store.add(cell("glibc", failure="ran too long"))
    assert not store.has(SCENARIO, SWITCHES, "glibc")
    assert not Store(tmp_path, {"nodes": 2}, VERSIONS).cells
    assert not Store(tmp_path, MACHINE, {**VERSIONS, "numalloc": "two"}).has(SCENARIO, SWITCHES, "numalloc")


def test_two_proofs_share_a_folder_and_half_a_line_does_no_harm(tmp_path):
    first, second = Store(tmp_path, MACHINE, VERSIONS), Store(tmp_path, MACHINE, VERSIONS)
    first.add(cell("numalloc"))
    second.add(cell("glibc"))
    with (tmp_path / "cells.jsonl").open("a") as file:
        file.write('{"machine": {"nod')
    Store(tmp_path, MACHINE, VERSIONS).add(cell("glibc", remote=4))
    again = Store(tmp_path, MACHINE, VERSIONS)
    assert [one.remote for one in again.cells.values()] == [3, 4]


def test_machine_that_stops_early_costs_one_cell(monkeypatch):
    """The program that ran at that moment has failed; the others run in another machine."""
    scenarios = listing1(["1M", "64K", "4K"], ["left"], ["free"], 1)
    started = []

    def run(machine, jobs, files, *, on_end, **switches):
        started.append([job.name for job in jobs])
        for job in jobs[:1]:
            on_end(job.name, batch.Result(2, "", "ended", 0))
        return batch.Report({}, ["panicked"], 1.0)

    monkeypatch.setattr(batch, "run", run)
    cells = []
    glibc = Allocator("glibc")
    findings = measure(build_machine(2, "2", "256M", "full"), [(one, glibc) for one in scenarios], SWITCHES, cells.append)
    assert [len(names) for names in started] == [3, 1]
    assert [one.failure for one in cells] == ["exit status 2: ended", "did not run", "exit status 2: ended"]
    assert findings == ["panicked", "panicked"]
