"""`numalloc stat` on eight nodes: what it sees from outside is what the programs count themselves."""

import json
import os

import guest_python
import pytest
from jobs import Jobs, passed

MIB = 1 << 20
NODES = 8
STAT = ("stat", "PID", "--json", "--watch", "3", "--count", "2")
WATCHED = guest_python.command(*STAT)
CHANCE = 0.1  # threads that do the same have different CPU times in an emulator; one of eight nodes is 0.125
JOBS = Jobs(nodes=NODES)

JOBS.add("local", "observed", "local", NODES, 8, *WATCHED, options={"binding": "interleave", "statistics_page": "1"})
JOBS.add("first-touch", "observed", "shared", NODES, 32, *WATCHED, options={"binding": "none"}, around=["numactl", "--membind=2"])
JOBS.add("interleaved", "observed", "shared", NODES, 32, *WATCHED, options={"binding": "none"}, around=["numactl", "--interleave=all"])
JOBS.add("far", "observed", "shared", 2, 32, *WATCHED, options={"binding": "none"}, around=["numactl", "--cpunodebind=5", "--membind=3"])
JOBS.add("near", "observed", "shared", 2, 32, *WATCHED, options={"binding": "none"}, around=["numactl", "--cpunodebind=5", "--membind=5"])


@pytest.fixture(scope="module")
def report(library):
    return JOBS.run(library, files=guest_python.files([str(os.getpid()) if word == "PID" else word for word in STAT]))


def counted_and_seen(report, name) -> tuple[dict, dict]:
    lines = [json.loads(line) for line in passed(report, name).stdout.splitlines()]
    return lines[0], lines[-1]


@pytest.mark.parametrize("name", JOBS.names)
def test_memory_of_each_node_is_what_the_program_counts(report, name):
    counted, seen = counted_and_seen(report, name)
    held = {one["node"]: one["own_bytes"] for one in seen["nodes"]}
    beside = 0
    for node in range(NODES):
        own = counted["bytes"][node] if node < len(counted["bytes"]) else 0
        assert held.get(node, 0) >= own, f"node {node}"
        beside += held.get(node, 0) - own
    assert beside < 8 * MIB  # stacks, the C library's data, the allocator's own


@pytest.mark.parametrize("name", JOBS.names)
def test_remote_share_is_between_the_two_figures(report, name):
    counted, seen = counted_and_seen(report, name)
    assert seen["remote_share"]["least"] - CHANCE <= counted["remote"] <= seen["remote_share"]["if_used_alike"] + CHANCE


@pytest.mark.parametrize("name", ["first-touch", "interleaved", "far", "near"])
def test_estimate_is_right_where_all_memory_is_used_alike(report, name):
    counted, seen = counted_and_seen(report, name)
    assert seen["remote_share"]["if_used_alike"] == pytest.approx(counted["remote"], abs=CHANCE)


def test_what_is_certain_is_seen_as_certain(report):
    least = {name: counted_and_seen(report, name)[1]["remote_share"]["least"] for name in JOBS.names}
    assert least["local"] < 0.01
    assert least["near"] < 0.05
    assert least["far"] > 0.95


def test_page_of_the_library_has_the_blocks_of_each_node(report):
    counted, seen = counted_and_seen(report, "local")
    page = seen["numalloc"]
    assert {one["node"]: one["big_bytes"] for one in page["nodes"] if one["node"] >= 0} == dict(enumerate(counted["bytes"]))
    assert 0 <= page["age_seconds"] < 60
    assert any(one["fetched"] for one in page["classes"])
    assert counted_and_seen(report, "near")[1]["numalloc"] is None


def test_threads_and_policies_are_seen(report):
    _, seen = counted_and_seen(report, "local")
    assert all(one["threads"] >= 1 for one in seen["nodes"])
    assert sum(one["threads"] for one in seen["nodes"]) == NODES + 1
    assert seen["under_numalloc"]
    assert any(policy["policy"].startswith("prefer") for policy in seen["policies"])
    _, far = counted_and_seen(report, "far")
    assert {one["node"]: one["threads"] for one in far["nodes"] if one["threads"]} == {5: 3}
    assert "bind:3" in [policy["policy"] for policy in far["policies"]]
    assert far["rates"]["cpus"] > 0


def test_kernel_had_nothing_to_say(report):
    assert report.findings == []
