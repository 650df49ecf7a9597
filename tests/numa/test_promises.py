"""Every promise about one page or one thread, on a machine of eight nodes in a row. Its nodes are small
because some of these tests fill one."""

import json
from itertools import groupby

import pytest
from jobs import Jobs, passed

JOBS = Jobs(nodes=8, memory_per_node="256M")
ALL_CPUS = "0-15"
ALL = "0-7"

JOBS.add("local-auto", "local", "used", 2)
JOBS.add("local-free", "local", "free", 2, options={"binding": "interleave"})
JOBS.add("local-pinned", "local", "pinned", 2)
JOBS.add("local-pinned-unbound", "local", "pinned", 1, options={"binding": "none"})
JOBS.add("local-saturate", "local", "free", 1, options={"binding": "saturate"})
JOBS.add("local-strict", "local", "free", 1, options={"binding": "interleave", "memory_binding": "strict"})

# Two threads on each of four nodes, and one that goes through many more moves.
JOBS.add("growing", "growing", 8, 100)
JOBS.add("growing-long", "growing", 1, 1000)

# Heap and bookkeeping are where they are meant to be, in huge pages too.
JOBS.add("regions", "regions")
JOBS.add("regions-strict", "regions", options={"memory_binding": "strict"})
JOBS.add("regions-huge-always", "regions", "huge", setup="echo always >/sys/kernel/mm/transparent_hugepage/enabled")
JOBS.add("regions-huge-on", "regions", "huge", options={"thp": "on"}, setup="echo madvise >/sys/kernel/mm/transparent_hugepage/enabled")
JOBS.add("local-huge", "local", "used", 1, options={"thp": "on"}, setup="echo always >/sys/kernel/mm/transparent_hugepage/enabled")
JOBS.add("local-huge-never", "local", "used", 1, options={"thp": "off"}, setup="echo always >/sys/kernel/mm/transparent_hugepage/enabled")

# Heaps that the program makes for itself.
JOBS.add("heaps", "heaps")
JOBS.add("heaps-strict", "heaps", options={"memory_binding": "strict"})

# A full node: node 0 is at the end of the row and has one nearest neighbour, node 3 has two.
for node in (0, 3):
    for size in (512, 65536, 1 << 20):
        JOBS.add(
            f"spill-node{node}-{size}",
            "full_node",
            node,
            size,
            "preferred",
            setup="echo madvise >/sys/kernel/mm/transparent_hugepage/enabled",
        )
        JOBS.add(f"strict-node{node}-{size}", "full_node", node, size, "strict", options={"memory_binding": "strict"})
JOBS.add("strict-huge", "full_node", 3, 1 << 20, "strict", options={"memory_binding": "strict", "thp": "on"})

# Node 1 is nearer, and not among those allowed.
JOBS.add("spill-within", "full_node", 0, 65536, "0,2", options={"memory": "bind:0,2"})

# Where threads are put on nodes that are all alike.
JOBS.add("interleave", "placement", 24, options={"binding": "interleave"})
JOBS.add("saturate", "placement", 16, options={"binding": "saturate"})

for who in ("main", "thread"):
    for call in ("self", "pthread"):
        JOBS.add(f"moving-{who}-{call}", "moving", who, call)
JOBS.add("moving-unbound", "moving", "thread", "self", options={"binding": "none"})

# What numactl and cpusets decide around the program.
JOBS.add("numactl-cpunodebind", "confined", "2-3", ALL, around=["numactl", "--cpunodebind=2,3"], options={"binding": "interleave"})
JOBS.add("numactl-cpunodebind-saturate", "confined", "2-3", ALL, around=["numactl", "--cpunodebind=2,3"], options={"binding": "saturate"})
JOBS.add("numactl-membind", "confined", ALL, "4", around=["numactl", "--membind=4"])
JOBS.add("numactl-membind-two", "confined", ALL, "1,6", around=["numactl", "--membind=1,6"])
JOBS.add("numactl-both", "confined", "5", "5", around=["numactl", "--cpunodebind=5", "--membind=5"])
JOBS.add("numactl-interleave", "confined", ALL, ALL, "interleaved", around=["numactl", "--interleave=all"])
JOBS.add("numactl-interleave-some", "confined", ALL, "1,2,7", "interleaved", around=["numactl", "--interleave=1,2,7"])
CPUSET = """
mkdir -p /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/test-{name}
echo {cpus} >/sys/fs/cgroup/test-{name}/cpuset.cpus
echo {mems} >/sys/fs/cgroup/test-{name}/cpuset.mems
sh -c 'echo $PPID >/sys/fs/cgroup/test-{name}/cgroup.procs'
"""
JOBS.add("cpuset", "confined", "1-2", "1-2", options={"binding": "interleave"}, setup=CPUSET.format(name="a", cpus="2-5", mems="1-2"))
JOBS.add("cpuset-memory-elsewhere", "confined", "1", "4-5", setup=CPUSET.format(name="b", cpus="2-3", mems="4-5"))

# fork and exec, with the user's own affinity and with the whole machine.
JOBS.add("affinity", "affinity", ALL_CPUS)
JOBS.add("affinity-saturate", "affinity", ALL_CPUS, options={"binding": "saturate"})
JOBS.add("affinity-taskset", "affinity", "4-9", around=["taskset", "3f0"])
JOBS.add("affinity-one-cpu", "affinity", "7", around=["taskset", "80"])


@pytest.mark.parametrize("name", JOBS.names)
def test_promise(report, name):
    passed(report, name)


def nodes_of_threads(report, name) -> list[int]:
    """The node of each thread in the order of their creation; all are bound to the whole of it."""
    seen = json.loads(passed(report, name).stdout)
    for thread in seen:
        assert thread["cpus"] == "{}-{}".format(*(2 * thread["nodes"][0] + cpu for cpu in (0, 1))), thread
        assert len(thread["nodes"]) == 1, thread
    return [thread["nodes"][0] for thread in seen]


def test_interleave_goes_round_all_nodes(report):
    nodes = nodes_of_threads(report, "interleave")
    assert nodes == [(nodes[0] + step) % 8 for step in range(24)]


def test_saturate_fills_one_node_after_the_other(report):
    nodes = nodes_of_threads(report, "saturate")
    assert [len(list(run)) for _, run in groupby(nodes)] == [2] * 8
    assert len(set(nodes)) == 8


def test_kernel_had_nothing_to_say(report):
    assert report.findings == []
