"""interleave and saturate put threads where the paper says: on even nodes, and on nodes of different
sizes with gaps, one without CPUs and one without memory."""

import json
from itertools import groupby

import pytest
from conftest import Jobs, passed

# Node:              0  1  2  (3)  4  5  6  7     3 does not exist, 5 has no CPU, 6 no memory
CPUS_OF = {0: 2, 1: 4, 2: 1, 4: 3, 6: 2, 7: 2}
FIRST_CPU = {0: 0, 1: 2, 2: 6, 4: 7, 6: 10, 7: 12}
JOBS = Jobs(nodes=8, cpus_per_node="2,4,1,2,3,2,2,2", absent="3", memory_only="5", cpu_only="6")
THREADS = sum(CPUS_OF.values())

RULES = "/tmp/rules"
JOBS.add("interleave", "placement", 2 * THREADS)
JOBS.add("saturate", "placement", THREADS, options={"binding": "saturate"})
JOBS.add("saturate-over", "placement", 2 * THREADS, options={"binding": "saturate"})
JOBS.add("none", "placement", 6, options={"binding": "none"})
JOBS.add(
    "file",
    "placement",
    8,
    options={"binding": "file", "binding_file": RULES},
    setup=f"printf '# a comment\\n1-3 4\\n4,6 1\\n5 7\\n' >{RULES}",
)
JOBS.add("confined", "placement", 8, around=["numactl", "--cpunodebind=1,4"])
JOBS.add("user-affinity", "placement", 8, around=["taskset", "7c"])
JOBS.add("local-free", "confined", "0-2,4,6-7", "0-2,4-5,7")
JOBS.add("lanes", "lanes", 24, 20)
JOBS.add("lanes-saturate", "lanes", 24, 20, options={"binding": "saturate"})
JOBS.add("saturate-memory", "confined", "0-2,4,6-7", "0-2,4-5,7", options={"binding": "saturate"})


def cpus_of(node: int) -> str:
    first, count = FIRST_CPU[node], CPUS_OF[node]
    return str(first) if count == 1 else f"{first}-{first + count - 1}"


def threads(report, name):
    return json.loads(passed(report, name).stdout)


def nodes_of_bound(seen) -> list[int]:
    """The node of each thread but the first, which has to be bound to the whole node."""
    nodes = []
    for number, thread in enumerate(seen[1:], 1):
        assert len(thread["nodes"]) == 1, f"thread {number} was on nodes {thread['nodes']}"
        node = thread["nodes"][0]
        assert thread["cpus"] == cpus_of(node), f"thread {number} of node {node} may run on {thread['cpus']}"
        nodes.append(node)
    return nodes


def after(node: int, count: int) -> list[int]:
    """The `count` nodes that follow `node`, round and round."""
    order = sorted(CPUS_OF)
    start = order.index(node) + 1
    return [order[(start + step) % len(order)] for step in range(count)]


def test_interleave_goes_round_the_nodes_that_have_cpus(report):
    first, *rest = nodes_of_bound(threads(report, "interleave"))
    assert rest == after(first, len(rest))


def test_interleave_starts_after_the_node_of_main(report):
    seen = threads(report, "interleave")
    assert len(seen[0]["nodes"]) >= 1
    first = nodes_of_bound(seen)[0]
    assert any(after(node, 1) == [first] for node in seen[0]["nodes"]), f"main on {seen[0]['nodes']}, the next on {first}"


@pytest.mark.parametrize("name", ["saturate", "saturate-over"])
def test_saturate_fills_a_node_before_the_next(report, name):
    seen = threads(report, name)
    nodes = nodes_of_bound(seen)
    # Main takes a CPU of the node it is on; that node is filled first, then one node after the other,
    # then all of it again.
    main_on = [node for node in seen[0]["nodes"] if node == nodes[0] or CPUS_OF[node] == 1]
    assert main_on, f"main was on {seen[0]['nodes']}, the next thread went to {nodes[0]}"
    order = [main_on[0], *nodes]
    filled = [(node, len(list(run))) for node, run in groupby(order[:THREADS])]
    assert sorted(filled) == sorted(CPUS_OF.items())
    assert order[THREADS:] == order[:THREADS][: len(order) - THREADS]


def test_none_leaves_threads_alone(report):
    for thread in threads(report, "none"):
        assert thread["cpus"] == f"0-{THREADS - 1}"


def test_file_is_obeyed(report):
    nodes = nodes_of_bound(threads(report, "file"))
    assert nodes[:6] == [4, 4, 4, 1, 7, 1]


def test_numactl_confines_binding(report):
    assert nodes_of_bound(threads(report, "confined"))[:4] in ([1, 4, 1, 4], [4, 1, 4, 1])


def test_binding_stays_within_the_users_affinity(report):
    """CPUs 2 to 6 are node 1, all of it, and node 2."""
    seen = threads(report, "user-affinity")
    assert {node for thread in seen for node in thread["nodes"]} <= {1, 2}
    assert set(nodes_of_bound(seen)) == {1, 2}


@pytest.mark.parametrize("name", ["local-free", "saturate-memory"])
def test_memory_is_where_it_can_be(report, name):
    """Threads on the node without memory are served from elsewhere, all others at home."""
    passed(report, name)


@pytest.mark.parametrize("name", ["lanes", "lanes-saturate"])
def test_a_thread_follows_the_one_before_it(report, name):
    passed(report, name)
