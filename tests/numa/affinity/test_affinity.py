"""Whoever moves a thread, or counts its CPUs: OpenMP, another thread, a raw system call."""

import subprocess
from pathlib import Path

import pytest
from jobs import passed
from numalloc_tools.guest import batch, programs
from numalloc_tools.guest.machine import build_machine

HERE = Path(__file__).parent
MACHINE = build_machine(nodes=8, cpus_per_node="2", memory_per_node="512M", distance="ladder")
BOUND = {"OMP_PROC_BIND": "spread", "OMP_PLACES": "cores"}

# name: program, arguments, environment, what starts it
JOBS = {
    "openmp": ("openmp", ["16", "policy"], {}, []),
    "openmp-saturate": ("openmp", ["16", "policy"], {"NUMALLOC_BINDING": "saturate"}, []),
    "openmp-own": ("openmp", ["16", "own"], BOUND, []),
    "openmp-taskset": ("openmp", ["6", "policy"], {}, ["taskset", "3f0"]),
    "moved-raw": ("moved", ["raw"], {}, []),
    "moved-raw-unbound": ("moved", ["raw"], {"NUMALLOC_BINDING": "none"}, []),
    "moved-by-another": ("moved", ["other"], {}, []),
    "moved-by-another-pthread": ("moved", ["other-pthread"], {}, []),
}


@pytest.fixture(scope="module")
def report(library, tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    for name in ("openmp", "moved"):
        subprocess.run(
            [
                "cc",
                "-std=gnu11",
                "-O2",
                "-fno-builtin",
                "-fopenmp",
                "-pthread",
                "-Wall",
                "-Wextra",
                "-I",
                programs.SOURCES,
                "-I",
                HERE.parent / "programs",
                HERE / f"{name}.c",
                "-o",
                folder / name,
            ],
            check=True,
        )
    jobs = [
        batch.Job(name, [*around, str(folder / program), *arguments], {"LD_PRELOAD": library, **environment})
        for name, (program, arguments, environment, around) in JOBS.items()
    ]
    return batch.run(MACHINE, jobs)


@pytest.mark.parametrize("name", JOBS)
def test_affinity(report, name):
    passed(report, name)
