"""Nodes: their numbers, and the kind, size and use of their memory."""

from collections.abc import Iterator

from numalloc_tools.doctor.finding import BAD, NOTE, OK, WARNING, Case, Finding
from numalloc_tools.machine.kinds import FAR, HBM
from numalloc_tools.machine.lists import ranges
from numalloc_tools.machine.words import count, size

_FULL = 0.03  # of a node's memory: less than this is free
_UNEVEN, _VERY_UNEVEN = 1.25, 2.0  # ratio of the largest node with CPUs to the smallest


def check(case: Case) -> Iterator[Finding]:
    for one in (_nodes, _memory_less, _memory_only, _uneven, _full):
        yield from one(case)


def _nodes(case: Case) -> Iterator[Finding]:
    nodes = case.machine.nodes
    if not nodes.from_sysfs and len(case.process.mems) > 1:
        yield Finding(
            BAD,
            "nodes",
            f"/sys/devices/system/node is not visible, but memory may come from nodes {ranges(case.process.mems)}",
            "The library reads the nodes there. Without it, the library treats the machine as one node, and places nothing.",
            ["Mount /sys in the container, read-only: docker and podman do so by themselves; with bwrap: --ro-bind /sys /sys"],
        )
    elif not case.several_nodes:
        limited = len(nodes.with_memory) > 1
        what = "This process may use the memory of one node only" if limited else "This machine has one memory node"
        yield Finding(
            NOTE,
            "nodes",
            what,
            "No memory is remote here: the library is a plain malloc, binds nothing, and cannot gain by placement.",
        )
    else:
        yield Finding(OK, "nodes", f"{count(len(case.usable_nodes), 'node')} with memory for this process: {ranges(case.usable_nodes)}")


def _memory_less(case: Case) -> Iterator[Finding]:
    for node in case.machine.nodes:
        nearest = case.machine.nodes.nearest_memory(node.number)
        if node.memory or not node.cpus or nearest is None:
            continue
        yield Finding(
            WARNING,
            "memory-less-node",
            f"Node {node.number} has CPUs {ranges(node.cpus)} but no memory",
            f"All memory is remote for threads there. The library assigns these CPUs to node {nearest.number}, the nearest "
            "one with memory.",
            [f"Put memory into that socket's slots, or keep programs off it: taskset -c {ranges(_near_cpus(case))} PROGRAM"],
        )


def _near_cpus(case: Case) -> list[int]:
    return sorted(cpu for node in case.machine.nodes if node.memory for cpu in node.cpus)


def _memory_only(case: Case) -> Iterator[Finding]:
    nodes = [node for node in case.machine.nodes if node.memory and not node.cpus]
    slow = [node for node in nodes if node.kind in FAR]
    fast = [node for node in nodes if node.kind == HBM]
    if slow:
        numbers = ranges([node.number for node in slow])
        fully = ranges([node.number for node in case.machine.nodes.with_memory if node not in slow])
        yield Finding(
            NOTE,
            "slow-memory",
            f"{'Nodes' if len(slow) > 1 else 'Node'} {numbers} have slower memory and no CPUs ({slow[0].told_by})",
            "The library binds no thread there, and uses this memory only when nearer nodes are full. But interleaved memory "
            "is placed there too, in equal parts unless the kernel has weights (Linux 6.9).",
            [
                f"To interleave without it: numactl --interleave={fully} PROGRAM",
                *(
                    f"echo WEIGHT > /sys/kernel/mm/mempolicy/weighted_interleave/node{node.number}"
                    for node in slow[:1]
                    if node.weight is not None
                ),
            ],
        )
    if fast:
        numbers = ranges([node.number for node in fast])
        yield Finding(
            NOTE,
            "fast-memory",
            f"{'Nodes' if len(fast) > 1 else 'Node'} {numbers} have fast memory and no CPUs ({fast[0].told_by})",
            "Memory is placed there only on request: threads are bound to nodes with CPUs, and allocate there.",
            [
                f"NUMALLOC_MEMORY=preferred:{fast[0].number} PROGRAM",
                f"NUMALLOC_MEMORY=bind:{numbers} PROGRAM, if all its memory fits there: it gets no other memory",
            ],
        )


def _uneven(case: Case) -> Iterator[Finding]:
    nodes = [node for node in case.machine.nodes if node.cpus and node.number in case.usable_nodes]
    if len(nodes) < 2:
        return
    least, most = min(nodes, key=lambda node: node.memory), max(nodes, key=lambda node: node.memory)
    ratio = most.memory / least.memory
    if ratio < _UNEVEN:
        return
    yield Finding(
        WARNING if ratio >= _VERY_UNEVEN else NOTE,
        "uneven-memory",
        f"Node {most.number} has {size(most.memory)}, node {least.number} only {size(least.memory)}",
        "Threads are spread evenly over the nodes. So the smaller node is full first, and its threads then get memory from other nodes.",
        ["Install the same memory in each socket, or place threads by NUMALLOC_BINDING=file with a rule for each node"],
    )


def _full(case: Case) -> Iterator[Finding]:
    for node in case.machine.nodes.with_memory:
        left = node.free + node.file_cache
        if node.number in case.usable_nodes and left < _FULL * node.memory:
            strict = case.option("memory_binding") == "strict"
            then = (
                "malloc fails for threads there (memory_binding=strict)"
                if strict
                else "New memory of threads there comes from the nearest other node"
            )
            yield Finding(
                WARNING,
                "full-node",
                f"Node {node.number} is nearly full: {size(left)} of {size(node.memory)} are left",
                f"{then}." if case.several_nodes else "The kernel will have to swap, or kill programs.",
                [
                    "ps -eo rss,pid,comm --sort -rss | head",
                    *(["numastat -p PID shows the nodes of a program's memory"] if case.several_nodes else []),
                ],
            )
