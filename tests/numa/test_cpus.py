"""A program never has fewer CPUs in use than under glibc, in a machine of two nodes with two CPUs each. It measures time, so
it is not in the gate: test_gate.py counts what it follows from."""

import json

import pytest
from jobs import Jobs, passed

JOBS = Jobs(nodes=2)
BUSY = "for cpu in 0 1; do taskset -c $cpu sh -c 'while :; do :; done' & done"  # another program fills the first node
GLIBC = ["env", "-u", "LD_PRELOAD"]
CASES = {"pairs": 8, "once": 8, "later": 8, "phases": 8, "all": 2}
for name, threads in CASES.items():  # the last one, beside the other program
    for kind, around in (("glibc", GLIBC), ("auto", [])):
        JOBS.add(f"{name}-{kind}", "cpus", name, threads, 3, around=around, setup=BUSY if f"{name}-{kind}" == "all-glibc" else "")


@pytest.mark.parametrize("name", CASES)
def test_as_many_cpus_as_under_glibc(report, name):
    glibc, ours = (json.loads(passed(report, f"{name}-{kind}").stdout)["cpus"] for kind in ("glibc", "auto"))
    print(name, "glibc", glibc, "numalloc", ours)
    assert all(mine >= 0.97 * theirs for mine, theirs in zip(ours, glibc, strict=True)), (ours, glibc)
