"""Made-up counts, as the emulator's plugin writes them."""

from numalloc_tools.lab.scope.counts import CAUSES

TLB = ("l1_misses", "l2_misses", "walk_lines_local", "walk_lines_remote")


def counts(nodes: int, **given) -> dict:
    numbers = dict.fromkeys(("instructions", "loads", "stores", "l1_misses", "l2_misses", "llc_hits"), 0)
    by_node = {name: [0] * nodes for name in ("fills", "transfers", "writebacks")}
    deep = {name: dict.fromkeys(keys, 0) | given.pop(name, {}) for name, keys in (("causes", CAUSES), ("tlb", TLB))}
    return {**numbers, **by_node, **deep, **given}


def run(node_of_cpu: list[int], cpus: list[dict], threads: list[dict] = (), **more) -> dict:
    """A row for each CPU; its node is that of the CPU."""
    nodes = max(node_of_cpu) + 1
    return {
        "version": 1, "machine": {"nodes": nodes, "node_of_cpu": node_of_cpu}, "window": "main", "kernel": False, "sample": 1,
        "cpus": [{"cpu": number, **counts(nodes, **one)} for number, one in enumerate(cpus)],
        "threads": [{"thread": number, **counts(nodes, **one)} for number, one in enumerate(threads)],
        "parties": {"program": counts(nodes), "allocator": counts(nodes)}, "symbols": [], "false_sharing": [], "stacks": [],
        **more,
    }  # fmt: skip
