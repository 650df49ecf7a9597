"""Made-up counts, as the emulator's plugin writes them."""

from collections.abc import Callable

from numalloc_tools.guest import batch

from research.scope import launch
from research.scope.counts import CAUSES

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
        "version": 2,
        "machine": {"nodes": nodes, "node_of_cpu": node_of_cpu},
        "window": "main",
        "sample": 1,
        "cpus": [{"cpu": number, **counts(nodes, **one)} for number, one in enumerate(cpus)],
        "threads": [{"thread": number, **counts(nodes, **one)} for number, one in enumerate(threads)],
        "parties": {"program": party(nodes), "allocator": party(nodes)},
        "symbols": [],
        "false_sharing": [],
        "seconds_of_host": 2.0,
        "kernel": False,
        **more,
    }


def party(nodes: int, **given) -> dict:
    """A row whose node is not known: of the allocator's code, or of a symbol."""
    return {"remote_fills": 0, "remote_transfers": 0, **counts(nodes, **given)}


def recorded(nodes: int = 4, lines: int = 1000, remote: int = 0) -> dict:
    """A small run with something of everything: each node's CPU reads `lines` of its own memory, CPU 0 `remote` of node 1's."""
    rows = []
    for node in range(nodes):
        fills = [lines if node == home else 0 for home in range(nodes)]
        fills[1] += remote if node == 0 else 0
        rows.append({"instructions": 100_000, "l1_misses": 5_000, "l2_misses": lines + 50, "fills": fills, "causes": {"cold": lines}})
    found = run(list(range(nodes)), rows)
    found["parties"]["allocator"] = party(nodes, instructions=10_000, remote_fills=remote)
    found["symbols"] = [
        {"object": "libnumalloc.so", "symbol": "malloc", **party(nodes, remote_fills=remote, remote_transfers=7)},
        {"object": "larson", "symbol": "_Z4takeRi", **party(nodes, remote_transfers=3)},
    ]
    found["allocator_data"] = {"objects": party(nodes, remote_fills=remote, remote_transfers=4), "own": party(nodes, remote_transfers=3)}
    owners = [{"size": 24, "offset": 8, "thread": 2, "freed": True}, {"in": "[heap]"}]
    found["false_sharing"] = [{"line": "0x40", "first": "0x48", "second": "0x60", "nodes": [0, 3], "times": 123, "class": owners}]
    return found


def made_up_machine(counts_of: Callable) -> Callable:
    """In place of launch.run. `counts_of`(machine, job, settings): counts; a text, which ended the program; None: the
    machine stops."""

    def run_all(machine, jobs, settings, on_end, **switches) -> None:
        for job in jobs:
            raw = counts_of(machine, job, settings)
            if raw is None:
                return
            failed = isinstance(raw, str)
            result = batch.Result(1 if failed else 0, "", raw if failed else "", 0)
            on_end(job.name, launch.Counted(result, None if failed else raw))

    return run_all
