"""`numalloc tune` on a machine with eight nodes: the whole command runs in it. A virtual machine has no distances, so
its programs print a score of where the kernel has put their pages, and that is what is tuned for."""

import json
import sys
from pathlib import Path

import guest_python
import pytest
from jobs import PROGRAMS, passed
from numalloc_tools.guest import batch, programs
from numalloc_tools.guest.machine import build_machine

NODES = 8
SCORE = ["--metric", "score: ([0-9.]+)", "--higher"]


def tuned(program: str, *words: str, around=()) -> batch.Job:
    command = [
        *around,
        *guest_python.command("tune", *SCORE, "--seed", "1", "--json"),
        "--output",
        f"/tmp/{program}",
        "--fix",
        "huge-pages=default",
        *words,
        "--",
        str(programs.built("tuned", PROGRAMS)),
        program,
        f"/tmp/count-{program}",
    ]
    return batch.Job("-".join([program, *(word for word in around if "/" not in word)]), command, timeout=1800)


@pytest.fixture(scope="module")
def report(library):
    machine = build_machine(NODES, "1", "1G", "ladder")
    beside = Path(library).with_name("libnumalloc-binding.so")
    interleaved = ("numactl", "--interleave=all")
    jobs = [
        tuned("shared", "--runs", "60"),
        tuned("own", "--runs", "50", "--allocators", "glibc", around=interleaved),
        tuned("same", "--runs", "60"),
    ]
    loaded = guest_python.files(["tune", *SCORE, "--runs", "40", "--", "echo", "score: 1"], packages=["matplotlib", "numpy"])
    files = [*loaded, library, *([str(beside)] if beside.is_file() else [])]
    return batch.run(machine, jobs, files, commands=[sys.executable])


def result(report, name: str) -> dict:
    return json.loads(passed(report, name).stdout)


def test_interleaving_is_found_where_all_read_what_one_wrote(report):
    found = result(report, "shared")
    chosen = found["chosen"]
    assert chosen["memory"] == "interleave" or dict(chosen.get("options", [])).get("interleave") in ("serial", "all")
    ratio = next(one for one in found["confirmation"] if one["setting"] == chosen)
    assert ratio["interval"][0] > 4, "eight nodes serve instead of one"
    assert "interleave" in found["command"]


def test_local_memory_is_found_where_each_thread_uses_its_own(report):
    """The user's habit of interleaving everything is wrong for this program."""
    found = result(report, "own-numactl---interleave=all")
    assert found["chosen"]["memory"] in ("local", "first-touch")
    ratio = next(one for one in found["confirmation"] if one["setting"] == found["chosen"])
    assert ratio["interval"][0] > 4, "an eighth of the pages was local before"


def test_nothing_is_found_where_nothing_differs(report):
    found = result(report, "same")
    assert found["verdict"] == "no significant difference"
    assert found["chosen"] is None
    tried = {row["name"] for row in found["race"]}
    assert any("memory=interleave" in name for name in tried) and any("threads=dense" in name for name in tried)


def test_kernel_had_nothing_to_say(report):
    assert report.findings == []
