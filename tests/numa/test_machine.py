"""`numalloc topology` and `numalloc doctor` on a machine of eight nodes, one of which has no CPUs and one no memory:
Python and the tools go into the guest, and ask its kernel."""

import json
import os
import re
import shlex
import sys
from pathlib import Path

import guest_python
import pytest
from jobs import passed
from numalloc_tools.guest import batch
from numalloc_tools.guest.machine import build_machine

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.path.realpath(sys.executable)
MEMORY_ONLY, CPU_ONLY = 5, 6
FORBIDDEN = ROOT / "tools/tests/forbidden.py"  # a command under a seccomp filter
SECCOMP = "/usr/lib/x86_64-linux-gnu/libseccomp.so.2"
ENVIRONMENT = {"NO_COLOR": "1", "COLUMNS": "120"}
# Threads that hold memory and wait.
HOLDS = (
    "import threading, time\n"
    "def hold():\n    kept = [bytearray(b'x' * 100_000) for _ in range(30)]\n    time.sleep(3600)\n    print(kept)\n"
    "for _ in range(7): threading.Thread(target=hold, daemon=True).start()\n"
    "time.sleep(3600)\n"
)
# The first thread has set up what the others might work on.
SERIAL = "table = bytearray(100 << 20)\ntable[::4096] = b'x' * len(table[::4096])\n" + HOLDS


def job(name: str, *words: str, environment: dict[str, str] | None = None, setup: str = "") -> batch.Job:
    return batch.Job(name, guest_python.command(*words), ENVIRONMENT | (environment or {}), setup)


@pytest.fixture(scope="module")
def report(library) -> batch.Report:
    machine = build_machine(8, "1", "768M", "twogroups", memory_only=str(MEMORY_ONLY), cpu_only=str(CPU_ONLY))
    holds, serial = (
        f"LD_PRELOAD={library} PYTHONMALLOC=malloc {PYTHON} -I -S -c {shlex.quote(what)} & echo $! > /tmp/pid; /lab/bin/sleep 20"
        for what in (HOLDS, SERIAL)
    )
    looks = f"exec {shlex.join(guest_python.command('doctor', '--json'))} $(/lab/bin/cat /tmp/pid)"
    jobs = [
        job("topology", "topology", "--json"),
        job("text", "topology"),
        job("autonuma", "doctor", "--json", setup="echo 1 > /proc/sys/kernel/numa_balancing"),
        batch.Job("forbidden", [PYTHON, str(FORBIDDEN), "EPERM", "mbind", *guest_python.command("doctor", "--json")], ENVIRONMENT),
        job("unbound", "doctor", "--json", environment={"NUMALLOC_MEMORY_BINDING": "none"}),
        batch.Job("process", ["/bin/sh", "-c", f"{holds}; {looks}"], ENVIRONMENT, "echo 0 > /proc/sys/kernel/numa_balancing"),
        batch.Job("serial", ["/bin/sh", "-c", f"{serial}; {looks}"], ENVIRONMENT),
    ]
    loaded = guest_python.files(["topology", "--json"], ["topology"], ["doctor", "--json"], ["doctor", "--json", str(os.getpid())])
    return batch.run(machine, jobs, [*loaded, library, PYTHON, *([SECCOMP] if os.path.exists(SECCOMP) else [])])


def findings(report: batch.Report, name: str, status: int = 0) -> dict[str, dict]:
    result = report.results[name]
    assert result.status == status, result.stdout + result.stderr
    return {finding["name"]: finding for finding in json.loads(result.stdout)["findings"]}


def test_topology_is_that_of_the_machine(report):
    found = json.loads(passed(report, "topology").stdout)
    nodes = found["nodes"]
    assert [node["number"] for node in nodes] == list(range(8))
    assert [node["number"] for node in nodes if not node["cpus"]] == [MEMORY_ONLY]
    assert [node["number"] for node in nodes if not node["memory"]] == [CPU_ONLY]
    assert nodes[0]["cpus"] == [0] and nodes[CPU_ONLY]["kind"] == "none"
    assert found["process"]["cpus"] == list(range(7)) and found["process"]["mems"] == [0, 1, 2, 3, 4, 5, 7]
    assert found["distances"][0] == [10, 21, 21, 21, 31, 31, 31, 31]
    assert {one["answer"] for one in found["permissions"] if one["call"] in ("mbind", "move_pages", "sched_setaffinity")} == {"allowed"}


def test_text_shows_the_nodes_and_their_distances(report):
    text = re.sub(r"\x1b\[[0-9;]*m", "", passed(report, "text").stdout)  # the guest's console is a terminal
    assert re.search(rf"^ *{MEMORY_ONLY} .*none .*memory-only", text, re.MULTILINE), text
    assert re.search(rf"^ *{CPU_ONLY} .*no memory; nearest: node", text, re.MULTILINE), text
    assert re.search(r"^0 +10 +21 +21 +21 +31 +31 +31 +31 *$", text, re.MULTILINE), text


def test_doctor_finds_the_node_without_memory_and_nothing_bad(report):
    found = findings(report, "autonuma")
    assert found["nodes"]["what"].startswith("7 nodes with memory")
    assert str(CPU_ONLY) in found["memory-less-node"]["what"] and found["calls"]["severity"] == "ok"


def test_autonuma_is_harmless_to_bound_memory_only(report):
    assert findings(report, "autonuma")["autonuma"]["severity"] == "note"
    assert findings(report, "unbound")["autonuma"]["severity"] == "warning"


def test_container_that_refuses_mbind_is_bad_where_there_are_nodes(report):
    if not os.path.exists(SECCOMP):
        pytest.skip("no libseccomp here")
    found = findings(report, "forbidden", status=1)["call-mbind"]
    assert found["severity"] == "bad" and found["what"].startswith("mbind is refused (EPERM), by a seccomp filter")


def test_process_is_seen_with_its_threads_and_memory_on_their_nodes(report):
    found = findings(report, "process")
    assert found["library"]["severity"] == "ok", found["library"]
    assert re.fullmatch(r"8 threads: .*1 on node \d.*", found["threads"]["what"])
    assert "prefer" in found["placement"]["what"] and found["placement"]["what"].count(" on node ") >= 5
    assert "one-sided" not in found


def test_memory_that_one_thread_has_set_up_for_all_is_named(report):
    found = findings(report, "serial")["one-sided"]
    assert re.fullmatch(r"\d\d % of its memory is on node \d, and \d of \d bound threads run on other nodes", found["what"])
    assert any("numa_balancing=1" in remedy for remedy in found["mend"])
