"""The kind of a node's memory, as far as the kernel tells: ordinary, HBM, CXL or persistent.

No file has the kind itself. It is inferred from the memory tiers, into which the kernel sorts nodes by speed; from DAX
devices, by which CXL and similar memory becomes a node; and from the firmware's table of bandwidths and latencies.
"""

import os
from dataclasses import dataclass, replace

from numalloc_tools.machine.files import Files, ending_number

DRAM, HBM, CXL, PERSISTENT, SLOWER, UNKNOWN, NONE = "DRAM", "HBM", "CXL", "persistent", "slower", "memory-only", "none"
FAR = (CXL, PERSISTENT, SLOWER)  # slow kinds, which programs use last

_TIERS = "/sys/devices/virtual/memory_tiering"
_DAX = "/sys/bus/dax/devices"
_ORDINARY_TIER = 4  # the tier of ordinary memory
_MUCH_FASTER = 1.5  # HBM has several times the bandwidth; ordinary memory of one machine differs by less


@dataclass(frozen=True)
class Performance:
    """For the fastest initiator. The kernel's units are megabytes per second and nanoseconds."""

    read_bandwidth: int | None
    write_bandwidth: int | None
    read_latency: int | None
    write_latency: int | None


@dataclass(frozen=True)
class Witness:
    tiers: dict[int, int]  # by node
    devices: dict[int, str]  # by node: the bus of its DAX device


def witness_of(files: Files) -> Witness:
    tiers = {}
    for name in files.names(_TIERS, "memory_tier"):
        for node in files.numbers(f"{_TIERS}/{name}/nodelist") or []:
            tiers[node] = ending_number(name) or 0
    devices = {}
    for name in files.names(_DAX, "dax"):
        target = files.number(f"{_DAX}/{name}/target_node")
        if target is not None:
            devices[target] = os.path.realpath(files.path(f"{_DAX}/{name}"))
    return Witness(tiers, devices)


def performance_of(files: Files, folder: str) -> Performance | None:
    for access in ("access1", "access0"):
        at = f"{folder}/{access}/initiators"
        found = [files.number(f"{at}/{name}") for name in ("read_bandwidth", "write_bandwidth", "read_latency", "write_latency")]
        if any(found):
            return Performance(*found)
    return None


def kind_of(node, reference, witness: Witness):
    """The node with its kind. `reference`: one with ordinary memory and CPUs, if there is any."""
    if not node.memory:
        return replace(node, kind=NONE, told_by="it has no memory")
    kind, told_by = _of_device(witness.devices.get(node.number, ""))
    if not kind and node is not reference and not node.cpus:
        kind, told_by = _of_performance(node.performance, reference.performance if reference else None)
        if not kind:
            kind, told_by = _of_tier(node.tier, reference.tier if reference else None)
    if not kind:
        kind, told_by = (DRAM, "it has CPUs") if node.cpus else (UNKNOWN, "it has no CPUs, and no file tells its kind")
    return replace(node, kind=kind, told_by=told_by)


def _of_device(path: str) -> tuple[str, str]:
    name = path.rpartition("/")[2]
    if any(part.startswith(("ndbus", "pmem", "ACPI0012")) for part in path.split("/")):
        return PERSISTENT, f"{name} is on non-volatile DIMMs"
    if any(part.startswith(("cxl", "dax_region", "ACPI0017")) for part in path.split("/")):
        return CXL, f"{name} is on CXL"
    return "", ""


def _of_performance(own: Performance | None, ordinary: Performance | None) -> tuple[str, str]:
    if own is None or ordinary is None:
        return "", ""
    if own.read_bandwidth and ordinary.read_bandwidth and own.read_bandwidth >= _MUCH_FASTER * ordinary.read_bandwidth:
        return HBM, f"{own.read_bandwidth / ordinary.read_bandwidth:.1f} times the bandwidth of ordinary memory"
    if own.read_latency and ordinary.read_latency and own.read_latency >= _MUCH_FASTER * ordinary.read_latency:
        return SLOWER, f"{own.read_latency / ordinary.read_latency:.1f} times the latency of ordinary memory, as CXL has"
    return "", ""


def _of_tier(tier: int | None, ordinary: int | None) -> tuple[str, str]:
    if tier is None:
        return "", ""
    ordinary = _ORDINARY_TIER if ordinary is None else ordinary
    if tier < ordinary:
        return HBM, f"memory tier {tier}, faster than {ordinary}"
    if tier > ordinary:
        return SLOWER, f"memory tier {tier}, slower than {ordinary}: CXL or persistent"
    return "", ""
