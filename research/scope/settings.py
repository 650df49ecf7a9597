"""The options of `research scope` that say which machine is booted and modelled, read and checked."""

import re
from dataclasses import dataclass, replace
from math import inf

from numalloc_tools.guest import values
from numalloc_tools.guest.machine import Machine, Node
from numalloc_tools.problem import Problem

from research.scope import hardware
from research.scope.hardware import CACHES, TLBS, Hardware

_USUAL_WAYS = 16  # where a new size does not go into the old ones
MOST_SAMPLED = 64  # sets of a first level
_MOST_LLCS = 64  # that the plugin has bits for
WINDOWS = ("markers", "main", "whole")


@dataclass(frozen=True)
class Settings:
    """What is counted in each run."""

    window: str = "main"
    sample: int = 1
    thp: str = "madvise"
    autonuma: bool = False
    timeout: int = 3600  # seconds
    stacks: bool = False
    objects: bool = False
    kernel: bool = False
    children: bool = False

    def as_json(self) -> dict:
        return dict(vars(self))


@dataclass(frozen=True)
class Target:
    """The virtual machine, and the real one that it stands for."""

    hardware: Hardware
    machine: Machine
    llcs_per_node: int


def target(
    preset: str,
    machine_file,
    nodes: int | None,
    nodes_per_package: int | None,
    cpus_per_node: str,
    memory_per_node: str,
    changes: list[str],
    parallelism: float | None,
    in_proportion: bool,
) -> Target:
    found = hardware.read(machine_file) if machine_file else hardware.named(preset)
    found = found.resized(nodes, nodes_per_package)
    for text in changes:
        found = _changed(found, text)
    if parallelism is not None:
        if not 1 <= parallelism < inf:
            raise Problem(f"--parallelism: {parallelism:g} is no number of misses under way at once; accepted: 1 or more")
        found = replace(found, parallelism=parallelism)
    cpus = values.per_node(cpus_per_node, found.nodes, "--cpus-per-node", values.count)
    memory = values.per_node(memory_per_node, found.nodes, "--memory-per-node", values.size)
    if max(cpus) > found.cpus_per_node:
        raise Problem(f"--cpus-per-node: {max(cpus)} on a node; accepted: up to the {found.cpus_per_node} that a node of {found.name} has")
    machine = Machine(tuple(Node(c, m) for c, m in zip(cpus, memory)), tuple(map(tuple, found.distance_matrix())))
    if in_proportion:
        found = _part(found, max(cpus))
    if (llcs := sum(min(found.llcs_per_node, count) for count in cpus)) > _MOST_LLCS:
        raise Problem(f"--cpus-per-node: they use {llcs} last-level caches; accepted: CPUs that use up to {_MOST_LLCS}")
    if _sets(found, "l1") & (_sets(found, "l1") - 1):
        raise Problem(f"--set: the l1 of {found.name} has {_sets(found, 'l1')} sets; accepted: a power of two of them")
    return Target(found, machine, found.llcs_per_node)


def check_sample(hardware: Hardware, sample: int) -> None:
    if not 1 <= sample <= MOST_SAMPLED or sample & (sample - 1):
        raise Problem(f"--sample: {sample} is not understood; accepted: 1 (every set), 2, 4, 8 ... {MOST_SAMPLED}")
    for name in CACHES:
        if rest := _sets(hardware, name) % sample:
            most = _sets(hardware, name) & -_sets(hardware, name)
            raise Problem(f"--sample: of the {name}'s {_sets(hardware, name)} sets {sample} leave {rest}; accepted: up to {most}")


def _sets(hardware: Hardware, name: str) -> int:
    size, ways = hardware.caches[name]
    return size // (ways * hardware.line)


def _changed(machine: Hardware, text: str) -> Hardware:
    """llc=4M:16 or tlb.l2=2048:8."""
    match = re.fullmatch(r"(tlb\.)?(\w+)=(\w+)(?::(\d+))?", text)
    name = match[2] if match else ""
    if not match or name not in (TLBS if match[1] else CACHES):
        names = ", ".join([*CACHES, *(f"tlb.{one}" for one in TLBS)])
        raise Problem(f"--set: '{text}' is not understood; accepted: NAME=SIZE or NAME=SIZE:WAYS, with NAME one of {names}")
    table = machine.tlbs if match[1] else machine.caches
    size = (values.count if match[1] else values.size)(match[3], "--set")
    unit = 1 if match[1] else machine.line
    usual = table[name][1]
    ways = int(match[4]) if match[4] else usual if size % (usual * unit) == 0 else _USUAL_WAYS
    if not size or not ways or size % (ways * unit):
        raise Problem(f"--set: '{text}': {size} in {ways} ways leaves a rest; accepted: a whole number of entries in each way")
    table = table | {name: (size, ways)}
    return replace(machine, tlbs=table) if match[1] else replace(machine, caches=table)


def _part(machine: Hardware, cpus: int) -> Hardware:
    """A machine with `cpus` CPUs a node, whose last level and bandwidths are as much smaller as it has fewer of them."""
    share = cpus / machine.cpus_per_node
    size, ways = machine.caches["llc"]
    caches = machine.llcs_per_node
    used = max(1, min(caches, cpus))
    sets = max(1, round(size // (ways * machine.line) * share * caches / used))
    return replace(
        machine,
        caches=machine.caches | {"llc": (min(size, sets * ways * machine.line), ways)},
        memory_per_package=machine.memory_per_package * share,
        link=machine.link * share,
    )
