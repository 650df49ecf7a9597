"""The soak's random calls where a kernel places the memory; tests/fuzz plays them on nodes that are made up."""

from pathlib import Path

import pytest
from conftest import passed
from numalloc_tools.lab import batch
from numalloc_tools.lab.run_command import build_machine

ROOT = Path(__file__).resolve().parents[2]
SOAK = ROOT / "build/debug/tests/fuzz/soak"
OPERATIONS, THREADS, SECONDS = 100_000, 4, 300
OPTIONS = {
    "strict": {"memory_binding": "strict", "thp": "on"},
    "interleaved": {"memory": "interleave"},
    "plain-realloc": {"realloc_keeps_node": "0", "purge_delay": "0", "guarded": "1/20"},
}


@pytest.fixture(scope="module")
def report() -> batch.Report:
    if not SOAK.is_file():
        pytest.fail(f"{SOAK} is missing; build it with cmake --preset debug && cmake --build --preset debug --target soak")
    jobs = [
        batch.Job(
            name,
            [str(SOAK), *map(str, (OPERATIONS, THREADS, SECONDS, seed))],
            {f"NUMALLOC_{key.upper()}": value for key, value in options.items()},
            "",
        )
        for seed, (name, options) in enumerate(OPTIONS.items(), 1)
    ]
    return batch.run(build_machine(nodes=4, cpus_per_node="2", memory_per_node="1G", distance="full"), jobs)


@pytest.mark.parametrize("name", OPTIONS)
def test_soak(report, name):
    said = passed(report, name).stdout
    assert "on the machine's nodes" in said
    assert "blocks changed hands" in said


def test_kernel_had_nothing_to_say(report):
    assert report.findings == []
