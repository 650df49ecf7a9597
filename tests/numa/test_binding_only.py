"""libnumalloc-binding.so: threads of a program on any other malloc are bound as numalloc's are, and it does
not show. Memory is not looked at: it is the other allocator's."""

import json
from itertools import groupby
from pathlib import Path

import pytest
from jobs import Jobs, passed

NODES, CPUS = 8, 16
JOBS = Jobs(nodes=NODES)
JOBS.add("interleave", "placement", CPUS)
JOBS.add("saturate", "placement", CPUS, options={"binding": "saturate"})
JOBS.add("none", "placement", 4, options={"binding": "none"})
JOBS.add("confined", "placement", 8, around=["taskset", "3c"])
JOBS.add("hidden", "affinity", f"0-{CPUS - 1}")
JOBS.add("hidden-behind-taskset", "affinity", "2-5", around=["taskset", "3c"])


@pytest.fixture(scope="module")
def report(library):
    binding = Path(library).with_name("libnumalloc-binding.so")
    if not binding.is_file():
        pytest.fail(f"{binding} is missing; build it with cmake --build --preset release")
    return JOBS.run(str(binding))


def nodes_of(report, name) -> list[int]:
    """The node of each thread but main; each is bound to all CPUs of one node."""
    nodes = []
    for number, thread in enumerate(json.loads(passed(report, name).stdout)[1:], 1):
        assert len(thread["nodes"]) == 1, f"thread {number} was on nodes {thread['nodes']}"
        node = thread["nodes"][0]
        assert thread["cpus"] == f"{2 * node}-{2 * node + 1}"
        nodes.append(node)
    return nodes


def test_interleave_spreads_threads_over_the_nodes(report):
    nodes = nodes_of(report, "interleave")
    assert nodes == [(nodes[0] + step) % NODES for step in range(CPUS - 1)]


def test_saturate_fills_node_after_node(report):
    filled = [len(list(run)) for _, run in groupby(nodes_of(report, "saturate"))]
    assert filled == [1] + [2] * (NODES - 1), "main has a CPU of the first"


def test_none_leaves_threads_alone(report):
    assert {thread["cpus"] for thread in json.loads(passed(report, "none").stdout)} == {f"0-{CPUS - 1}"}


def test_the_users_affinity_wins(report):
    assert set(nodes_of(report, "confined")) == {1, 2}


@pytest.mark.parametrize("name", ["hidden", "hidden-behind-taskset"])
def test_binding_does_not_show(report, name):
    passed(report, name)
