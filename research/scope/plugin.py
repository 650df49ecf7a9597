"""numascope's plugin: its path, and the facts about the machine that it gets."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from numalloc_tools.guest.machine import Machine
from numalloc_tools.problem import Problem

WINDOWS = ("main", "markers", "whole")
LIBRARY = "numascope.so"
_BUILT = Path(__file__).parents[2] / "build/release"
_GIGABYTE = 1 << 30
_HIGH = 4 * _GIGABYTE  # the address at which memory continues above the gap for devices


@dataclass(frozen=True)
class Geometry:
    size: int  # bytes of a cache, entries of a TLB
    ways: int

    def __str__(self) -> str:
        return f"{self.size}/{self.ways}"


@dataclass(frozen=True)
class Caches:
    """The caches of an average current server: each CPU has its own, except the last level, which groups of CPUs share."""

    l1: Geometry = Geometry(32 << 10, 8)
    l2: Geometry = Geometry(1 << 20, 16)
    llc: Geometry = Geometry(16 << 20, 16)
    llcs_per_node: int = 1
    tlb_l1_4k: Geometry = Geometry(64, 4)
    tlb_l1_2m: Geometry = Geometry(32, 4)
    tlb_l2: Geometry = Geometry(1536, 12)


@dataclass(frozen=True)
class Settings:
    caches: Caches = field(default_factory=Caches)
    window: str = "main"
    sample: int = 1
    quantum: int = 10_000  # instructions per turn of a CPU
    objects: bool = False  # calls of the allocator are watched
    children: bool = False  # that it forks are counted
    kernel: bool = False  # the kernel's work for the program is counted
    stacks: bool = False  # are sampled where lines come from other nodes


def library() -> Path:
    """NUMALLOC_SCOPE_PLUGIN names another plugin than the one built here."""
    given = os.environ.get("NUMALLOC_SCOPE_PLUGIN")
    path = Path(given) if given else _BUILT / LIBRARY
    if not path.is_file():
        raise Problem(f"{path} is missing; build it with cmake --preset release && cmake --build --preset release", 125)
    return path


def argument(machine: Machine, settings: Settings, out: Path, calls: Path) -> str:
    """The argument of QEMU's -plugin. `out` gets a line of JSON for each run; `calls`: the file of calls.write."""
    nodes = [number for number, node in enumerate(machine.nodes) for _ in range(node.cpus)]
    caches = settings.caches
    values = {
        "out": out,
        "node-of-cpu": ":".join(map(str, nodes)),
        "llc-of-cpu": ":".join(map(str, _groups(machine, caches.llcs_per_node))),
        "memory": ":".join(f"{start:x}-{end:x}-{node}" for start, end, node in memory_ranges(machine)),
        "l1": caches.l1,
        "l2": caches.l2,
        "llc": caches.llc,
        "tlb-l1-4k": caches.tlb_l1_4k,
        "tlb-l1-2m": caches.tlb_l1_2m,
        "tlb-l2": caches.tlb_l2,
        "window": settings.window,
        "sample": settings.sample,
        "quantum": settings.quantum,
        "stacks": int(settings.stacks),
        "kernel": int(settings.kernel),
        "children": int(settings.children),
    }
    if settings.objects:
        values["calls"] = calls
    return ",".join([str(library()), *(f"{key}={value}" for key, value in values.items())])


def _groups(machine: Machine, per_node: int) -> list[int]:
    """The last-level cache of each CPU: a node's CPUs are divided equally, in their order."""
    groups: list[int] = []
    used = 0
    for node in machine.nodes:
        parts = min(per_node, node.cpus)
        groups += [used + cpu * parts // node.cpus for cpu in range(node.cpus)]
        used += parts
    return groups


def memory_ranges(machine: Machine) -> list[tuple[int, int, int]]:
    """(start, end, node) of physical addresses: QEMU's PC board has the nodes' memory in sequence, with a gap for devices
    below 4 GiB; the gap is larger if memory continues above it."""
    low = 3 * _GIGABYTE if machine.memory >= 0xE0000000 else 0xE0000000
    ranges = []
    at = 0
    for number, node in enumerate(machine.nodes):
        end = at + node.memory
        for first, last, shift in ((at, min(end, low), 0), (max(at, low), end, _HIGH - low)):
            if first < last:
                ranges.append((first + shift, last + shift, number))
        at = end
    return ranges
