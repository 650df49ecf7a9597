"""Memory over sets of nodes: blocks, heaps and threads, by weights and by kind, and a thread that moves with its blocks."""

import pytest
from jobs import Jobs, passed

# Node 7 has memory only.
JOBS = Jobs(nodes=8, memory_per_node="256M", memory_only="7")
JOBS.add("blocks", "sets", "blocks")
JOBS.add("blocks-huge", "sets", "blocks", options={"thp": "auto"}, setup="echo always >/sys/kernel/mm/transparent_hugepage/enabled")
JOBS.add("blocks-hardened", "sets", "blocks", library="libnumalloc-hardened.so")
JOBS.add("heaps", "sets", "heaps")
JOBS.add("heaps-hardened", "sets", "heaps", library="libnumalloc-hardened.so")
JOBS.add("threads", "sets", "threads")
JOBS.add("kinds", "sets", "kinds", "7")
JOBS.add("rehomed", "sets", "rehomed", options={"binding": "none"}, setup="echo never >/sys/kernel/mm/transparent_hugepage/enabled")
JOBS.add("rehomed-huge", "sets", "rehomed", setup="echo always >/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.parametrize("name", JOBS.names)
def test_set(report, name):
    passed(report, name)


def test_kernel_had_nothing_to_say(report):
    assert report.findings == []
