"""JArena's applications on eight nodes: each computes the exact result however its patches were allocated,
and with psm_alloc no page of a patch is on another node than the thread that computes it, although another
thread allocated and wrote it first and all patches change hands on the way."""

import json

import pytest
from jobs import ROOT, passed
from numalloc_tools.guest import batch
from numalloc_tools.guest.machine import build_machine

PROGRAMS = ("advection2d", "advection3d", "fdtd3d")
FOLDER = ROOT / "build/release/bench/jarena"
# Sixteen threads with a few patches each, which change hands twice.
SIZES = {"advection2d": (20, 8), "advection3d": (10, 4), "fdtd3d": (10, 3)}

# How the patches come about: allocator, words of the program, the command around it.
WAYS = {
    "psm": ("numalloc", ["--memory", "psm"], []),
    "first-touch": ("glibc", ["--memory", "owner", "--pinned"], []),
    "wrong-touch": ("glibc", ["--memory", "wrong", "--pinned"], []),
    "interleaved": ("glibc", ["--memory", "owner", "--pinned"], ["numactl", "--interleave=all"]),
}


@pytest.fixture(scope="module")
def report(library) -> batch.Report:
    jobs = []
    for program in PROGRAMS:
        cells, patches = SIZES[program]
        for way, (allocator, words, around) in WAYS.items():
            command = [
                *around,
                str(FOLDER / program),
                *words,
                "--threads",
                "16",
                "--cells",
                str(cells),
                "--patches",
                str(patches),
                "--steps",
                "4",
                "--regrid-every",
                "2",
            ]
            jobs.append(batch.Job(f"{program}-{way}", command, {"LD_PRELOAD": library} if allocator == "numalloc" else {}))
    machine = build_machine(nodes=8, cpus_per_node="2", memory_per_node="256M", distance="full")
    return batch.run(machine, jobs)


def outcome(report, program, way) -> dict:
    return json.loads(passed(report, f"{program}-{way}").stdout.splitlines()[-1])


def share(figures: dict) -> float:
    return figures["remote_pages"] / (figures["local_pages"] + figures["remote_pages"])


@pytest.mark.parametrize("program", PROGRAMS)
def test_psm_has_no_remote_page_and_nobody_has_fewer(report, program):
    figures = {way: outcome(report, program, way) for way in WAYS}
    assert all(one["check"] == "ok" for one in figures.values())
    assert figures["psm"]["remote_pages"] == 0, figures["psm"]
    assert figures["psm"]["local_pages"] > 100
    assert all(share(figures["psm"]) <= share(one) for one in figures.values())
    # What would also be so if nothing could tell where pages are: these two must show.
    assert share(figures["wrong-touch"]) > 0.3 and share(figures["interleaved"]) > 0.5, figures
