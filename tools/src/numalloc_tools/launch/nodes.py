"""The nodes that this process may use: their CPUs, memory and distances."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from numalloc_tools.machine.lists import numbers, ranges
from numalloc_tools.problem import Problem

_FOLDER = Path("/sys/devices/system/node")


@dataclass(frozen=True)
class Nodes:
    online: tuple[int, ...]
    cpus: dict[int, tuple[int, ...]]  # by node: the CPUs on which this process may run
    memory: tuple[int, ...]  # nodes whose memory it may use

    @property
    def one(self) -> bool:
        """Whether there is only one node."""
        return len(self.online) <= 1

    def with_memory(self, node: int, flag: str) -> int:
        if node not in self.online:
            raise Problem(f"{flag}: this machine has no node {node}; accepted: {ranges(sorted(self.memory), steps=False)}")
        if node not in self.memory:
            raise Problem(
                f"{flag}: node {node} has no memory that this process may use; accepted: {ranges(sorted(self.memory), steps=False)}"
            )
        return node

    def nearest_memory(self, node: int) -> int:
        """The node itself if it has memory."""
        distances = _words(_FOLDER / f"node{node}" / "distance")
        far = dict(zip(self.online, map(int, distances), strict=False))
        return min(self.memory, key=lambda other: (other != node, far.get(other, 0), other))


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _list(path: Path) -> tuple[int, ...]:
    return tuple(numbers("".join(_words(path))))


def _allowed_memory() -> tuple[int, ...]:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Mems_allowed_list:"):
            return tuple(numbers(line.partition(":")[2]))
    return (0,)


@cache
def read() -> Nodes:
    online = _list(_FOLDER / "online") or (0,)
    mine = os.sched_getaffinity(0)
    if len(online) == 1:
        return Nodes(online, {online[0]: tuple(sorted(mine))}, online)
    cpus = {node: tuple(cpu for cpu in _list(_FOLDER / f"node{node}" / "cpulist") if cpu in mine) for node in online}
    allowed = _allowed_memory()
    memory = tuple(node for node in _list(_FOLDER / "has_memory") if node in allowed)
    return Nodes(online, {node: some for node, some in cpus.items() if some}, memory)


def autonuma_is_on() -> bool:
    words = _words(Path("/proc/sys/kernel/numa_balancing"))
    return bool(words) and words[0] != "0"
