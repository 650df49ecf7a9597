"""Where the threads of the program `placement` have to be, on any nodes."""

import json
from collections import Counter
from itertools import groupby

from jobs import passed
from numalloc_tools.guest import batch


def threads(report: batch.Report, name: str) -> list[dict]:
    """Of each thread in order of creation, main first: the nodes it was seen on, and the CPUs that the kernel allows it."""
    return json.loads(passed(report, name).stdout)


class Nodes:
    def __init__(self, cpus_of: dict[int, int]):
        self._cpus_of = cpus_of
        self._cpus = sum(cpus_of.values())
        self._first_cpu = {}
        first = 0
        for node, count in sorted(cpus_of.items()):
            self._first_cpu[node] = first
            first += count

    def cpus(self, node: int) -> str:
        first, count = self._first_cpu[node], self._cpus_of[node]
        return str(first) if count == 1 else f"{first}-{first + count - 1}"

    def of_bound(self, seen: list[dict]) -> list[int]:
        """The node of each thread but the first, which has to be bound to the whole node."""
        nodes = []
        for number, thread in enumerate(seen[1:], 1):
            assert len(thread["nodes"]) == 1, f"thread {number} was on nodes {thread['nodes']}"
            node = thread["nodes"][0]
            assert thread["cpus"] == self.cpus(node), f"thread {number} of node {node} may run on {thread['cpus']}"
            nodes.append(node)
        return nodes

    def after(self, node: int, count: int) -> list[int]:
        """The `count` nodes that follow `node`, round and round."""
        order = sorted(self._cpus_of)
        start = order.index(node) + 1
        return [order[(start + step) % len(order)] for step in range(count)]

    def check_interleaved(self, seen: list[dict]) -> None:
        first, *rest = self.of_bound(seen)
        assert rest == self.after(first, len(rest))

    def check_saturated(self, order: list[int]) -> None:
        """`order`: the node of each thread, main's too."""
        filled = [(node, len(list(run))) for node, run in groupby(order[: self._cpus])]
        assert sorted(filled) == sorted(self._cpus_of.items())
        assert order[self._cpus :] == order[: self._cpus][: len(order) - self._cpus]

    def check_room(self, seen: list[dict]) -> None:
        """There are more threads than CPUs, and the first, which hardly allocates, is not bound."""
        assert seen[0]["cpus"] == f"0-{self._cpus - 1}"
        masks = Counter(thread["cpus"] for thread in seen)
        assert masks.pop(f"0-{self._cpus - 1}") == len(seen) - self._cpus
        assert masks == {self.cpus(node): count for node, count in self._cpus_of.items()}

    def check_left_alone(self, seen: list[dict]) -> None:
        for thread in seen:
            assert thread["cpus"] == f"0-{self._cpus - 1}"
