"""interleave and saturate put threads where the paper says: on even nodes, and on nodes of different
sizes with gaps, one without CPUs and one without memory."""

import pytest
from jobs import Jobs, passed
from placed import Nodes, threads

# Node:              0  1  2  (3)  4  5  6  7     3 does not exist, 5 has no CPU, 6 no memory
CPUS_OF = {0: 2, 1: 4, 2: 1, 4: 3, 6: 2, 7: 2}
NODES = Nodes(CPUS_OF)
JOBS = Jobs(nodes=8, cpus_per_node="2,4,1,2,3,2,2,2", absent="3", memory_only="5", cpu_only="6")
THREADS = sum(CPUS_OF.values())

RULES = "/tmp/rules"
JOBS.add("interleave", "placement", 2 * THREADS, options={"binding": "interleave"})
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
JOBS.add("auto", "placement", 2 * THREADS)
JOBS.add("confined", "placement", 8, around=["numactl", "--cpunodebind=1,4"], options={"binding": "interleave"})
JOBS.add("user-affinity", "placement", 8, around=["taskset", "7c"], options={"binding": "interleave"})
JOBS.add("local-free", "confined", "0-2,4,6-7", "0-2,4-5,7")
JOBS.add("lanes", "lanes", 24, 20, options={"binding": "interleave"})
JOBS.add("lanes-saturate", "lanes", 24, 20, options={"binding": "saturate"})
JOBS.add("saturate-memory", "confined", "0-2,4,6-7", "0-2,4-5,7", options={"binding": "saturate"})


def test_auto_binds_no_more_threads_than_a_node_has_cpus(report):
    NODES.check_room(threads(report, "auto"))


def test_interleave_goes_round_the_nodes_that_have_cpus(report):
    NODES.check_interleaved(threads(report, "interleave"))


def test_interleave_starts_after_the_node_of_main(report):
    seen = threads(report, "interleave")
    assert len(seen[0]["nodes"]) >= 1
    first = NODES.of_bound(seen)[0]
    assert any(NODES.after(node, 1) == [first] for node in seen[0]["nodes"]), f"main on {seen[0]['nodes']}, the next on {first}"


@pytest.mark.parametrize("name", ["saturate", "saturate-over"])
def test_saturate_fills_a_node_before_the_next(report, name):
    seen = threads(report, name)
    nodes = NODES.of_bound(seen)
    # Main takes a CPU of the node it is on; that node is filled first, then one node after the other,
    # then all of it again.
    main_on = [node for node in seen[0]["nodes"] if node == nodes[0] or CPUS_OF[node] == 1]
    assert main_on, f"main was on {seen[0]['nodes']}, the next thread went to {nodes[0]}"
    NODES.check_saturated([main_on[0], *nodes])


def test_none_leaves_threads_alone(report):
    NODES.check_left_alone(threads(report, "none"))


def test_file_is_obeyed(report):
    nodes = NODES.of_bound(threads(report, "file"))
    assert nodes[:6] == [4, 4, 4, 1, 7, 1]


def test_numactl_confines_binding(report):
    assert NODES.of_bound(threads(report, "confined"))[:4] in ([1, 4, 1, 4], [4, 1, 4, 1])


def test_binding_stays_within_the_users_affinity(report):
    """CPUs 2 to 6 are node 1, all of it, and node 2."""
    seen = threads(report, "user-affinity")
    assert {node for thread in seen for node in thread["nodes"]} <= {1, 2}
    assert set(NODES.of_bound(seen)) == {1, 2}


@pytest.mark.parametrize("name", ["local-free", "saturate-memory"])
def test_memory_is_where_it_can_be(report, name):
    """Threads on the node without memory are served from elsewhere, all others at home."""
    passed(report, name)


@pytest.mark.parametrize("name", ["lanes", "lanes-saturate"])
def test_a_thread_follows_the_one_before_it(report, name):
    passed(report, name)
