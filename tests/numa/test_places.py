"""Memory where the program says: owners, nodes, interleaved, by the placement levers, and moved."""

import pytest
from jobs import Jobs, passed
from places import EVERYWHERE

JOBS = Jobs(nodes=8, memory_per_node="256M")
ALL = "0-7"

for name, words in EVERYWHERE.items():
    JOBS.add(name, *words)
JOBS.add("psm-saturate", "psm", "neighbours", 6, options={"binding": "saturate"})
JOBS.add("promised-saturate", "psm", "promised", 12, options={"binding": "saturate"})
JOBS.add(
    "promised-file",
    "psm",
    "promised",
    6,
    options={"binding": "file", "binding_file": "/tmp/rules"},
    setup="printf '0 3\\n1-2 7\\n3-9 4,1\\n' >/tmp/rules",
)

JOBS.add("interleave-serial", "places", "phases", "serial", options={"interleave": "serial"})
JOBS.add("interleave-all", "places", "phases", "all", options={"interleave": "all"})
JOBS.add("memory-interleave", "places", "phases", "all", options={"memory": "interleave"})
JOBS.add("memory-preferred", "places", "only", "5", options={"memory": "preferred:5"})
JOBS.add("memory-bind", "places", "only", "2,6", options={"memory": "bind:2,6"})
for beside in ("serial", "all"):
    JOBS.add(f"memory-bind-{beside}", "places", "only", "2,6", options={"memory": "bind:2,6", "interleave": beside})
JOBS.add("chosen-interleave", "places", "chosen", ALL, "interleave")
JOBS.add("chosen-preferred", "places", "chosen", "6", "preferred:6")
JOBS.add("realloc-does-not", "places", "kept", "no", options={"realloc_keeps_node": "0"})
JOBS.add("full", "places", "full", 3, options={"memory_binding": "strict"})
JOBS.add("allowed-membind", "places", "allowed", "1,6", around=["numactl", "--membind=1,6"])
JOBS.add("allowed-all", "places", "allowed", ALL)
CPUSET = """
mkdir -p /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p /sys/fs/cgroup/places
echo 0-15 >/sys/fs/cgroup/places/cpuset.cpus
echo 2-3 >/sys/fs/cgroup/places/cpuset.mems
sh -c 'echo $PPID >/sys/fs/cgroup/places/cgroup.procs'
"""
JOBS.add("allowed-cpuset", "places", "allowed", "2-3", setup=CPUSET)


@pytest.mark.parametrize("name", JOBS.names)
def test_place(report, name):
    passed(report, name)


def test_kernel_had_nothing_to_say(report):
    assert report.findings == []
