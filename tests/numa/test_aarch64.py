"""The library on aarch64: cross-compiled, in virtual machines of four nodes whose kernels have pages of 4 KiB and of
16. Unit tests, the tests that survive anything, threads, and the core of the proof. Translated code is slow:

    pytest tests/numa/test_aarch64.py                           a choice, some minutes
    NUMALLOC_TEST_LONG=1 pytest tests/numa/test_aarch64.py      all that can run there (guest_tests.py), an hour
    NUMALLOC_TEST_KERNEL=FILE                                   on this kernel, such as one with pages of 64 KiB
"""

import os
from functools import cache
from pathlib import Path

import guest_tests
import pytest
from aarch64_choice import BUILD, CHOICE
from numalloc_tools.allocators import Allocator
from numalloc_tools.guest import batch, kernel
from numalloc_tools.guest.architecture import AARCH64
from numalloc_tools.guest.machine import build_machine
from numalloc_tools.guest.scenarios import THREADS_ARE, Switches, generations, listing1, measure

LONG = os.environ.get("NUMALLOC_TEST_LONG") == "1"
OWN_KERNEL = os.environ.get("NUMALLOC_TEST_KERNEL")
PAGES = ("4K", "16K") if not OWN_KERNEL else ("own",)
NODES = 4

PROOF = listing1(["64K", "64"], ["left", "other"], ["free"], 1, 1 << 20)
WHOLE_PROOF = listing1(["1M", "64K", "4K", "64"], ["own", "left", "other"], list(THREADS_ARE), 1, 4 << 20) + generations(
    list(THREADS_ARE), 4
)


def kernel_of(pages: str) -> Path:
    return Path(OWN_KERNEL) if OWN_KERNEL else kernel.image(None, AARCH64, pages)


def names_of(pages: str) -> list[str]:
    if not LONG:
        return list(CHOICE[pages])
    return guest_tests.going(BUILD, ["*"]) if BUILD.is_dir() else ["the build"]


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    if not (BUILD / "libnumalloc.so").is_file():
        pytest.fail(f"{BUILD} is missing; build it with cmake --preset aarch64 && cmake --build --preset aarch64")


@cache
def report_of(group: str) -> batch.Report:
    pages = group.removeprefix("aarch64-")
    jobs = guest_tests.jobs(BUILD, names_of(pages))
    machine = build_machine(NODES, "1", "768M", "ladder", arch="aarch64")
    # A thread of the host for each CPU: what threads do at the same time is what is looked for.
    return batch.run(
        machine,
        jobs,
        guest_tests.files(BUILD, [job.name for job in jobs]),
        kernel_image=kernel_of(pages),
        tcg_threads="multi",
        commands=guest_tests.COMMANDS,
    )


@pytest.mark.parametrize(
    ("group", "name"), [pytest.param(f"aarch64-{pages}", name, id=f"{pages}-{name}") for pages in PAGES for name in names_of(pages)]
)
def test_passes_there(group, name):
    report = report_of(group)
    assert name in report.results, f"did not run; the machine said: {report.findings}"
    result = report.results[name]
    if result.status == 77:
        pytest.skip(result.stdout.strip())
    assert result.status == 0, f"exit status {result.status}\n{result.stdout[-4000:]}\n{result.stderr[-4000:]}"


@cache
def cells_of(group: str):
    machine = build_machine(NODES, "2", "512M", "twogroups", arch="aarch64")
    ours = Allocator("numalloc", (BUILD / "libnumalloc.so",))
    cells = []
    wanted = [(one, ours) for one in (WHOLE_PROOF if LONG else PROOF)]
    findings = measure(
        machine, wanted, Switches("madvise", False), cells.append, kernel_image=kernel_of(group.removeprefix("aarch64-proof-"))
    )
    return {cell.scenario.name: cell for cell in cells}, findings


@pytest.mark.parametrize(
    ("group", "scenario"),
    [
        pytest.param(f"aarch64-proof-{pages}", one.name, id=f"{pages}-{one.name}")
        for pages in PAGES
        for one in (WHOLE_PROOF if LONG else PROOF)
    ],
)
def test_no_page_is_remote_there(group, scenario):
    cells, findings = cells_of(group)
    cell = cells[scenario]
    assert not cell.failure, f"{cell.failure}; the machine said: {findings}"
    assert cell.passed(NODES), f"{cell.remote} of {cell.pages} pages are remote; spread {cell.spread}"
