"""Memory nodes: their CPUs, their memory, and how far they are from each other."""

from dataclasses import dataclass, field

from numalloc_tools.machine.files import Files, as_number, ending_number, kilobytes
from numalloc_tools.machine.kinds import Performance, Witness, kind_of, performance_of, witness_of
from numalloc_tools.machine.lists import numbers

NODES = "/sys/devices/system/node"
LOCAL, REMOTE = 10, 20  # default distances, if the firmware has none


@dataclass(frozen=True)
class HugePages:
    """Pages reserved for hugetlbfs, without transparent huge pages."""

    size: int
    total: int
    free: int


@dataclass(frozen=True)
class Node:
    number: int
    cpus: list[int]
    memory: int  # bytes
    free: int
    file_cache: int  # inactive: the kernel reclaims it first
    kind: str  # kinds.py; "none" without memory
    told_by: str  # the evidence
    tier: int | None  # of the kernel's memory tiers: a smaller number is faster
    transparent_huge: int  # bytes of anonymous memory on huge pages
    weight: int | None  # of weighted interleaving
    performance: Performance | None
    initiators: list[int]  # nodes whose CPUs have the fastest access
    huge_pages: list[HugePages] = field(default_factory=list)


@dataclass(frozen=True)
class Nodes:
    nodes: list[Node]
    distances: list[list[int]]  # in the order of `nodes`
    from_sysfs: bool  # False: the machine is treated as one node
    possible: list[int]

    def __iter__(self):
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def numbers(self) -> list[int]:
        return [node.number for node in self.nodes]

    @property
    def with_memory(self) -> list[Node]:
        return [node for node in self.nodes if node.memory]

    @property
    def with_cpus(self) -> list[Node]:
        return [node for node in self.nodes if node.cpus]

    def named(self, number: int) -> Node | None:
        return next((node for node in self.nodes if node.number == number), None)

    def distance(self, origin: int, target: int) -> int:
        order = self.numbers
        return self.distances[order.index(origin)][order.index(target)]

    def nearest_memory(self, number: int) -> Node | None:
        """The node whose memory the CPUs of a node without memory use, as the library chooses it."""
        return min(self.with_memory, key=lambda node: self.distance(number, node.number), default=None)


def read(files: Files) -> Nodes:
    present = [number for name in files.names(NODES, "node") if (number := ending_number(name)) is not None]
    online = files.numbers(f"{NODES}/online")
    order = sorted(set(present) & set(online) if online else present)
    if not order:
        return Nodes([_whole_machine(files)], [[LOCAL]], False, [0])
    witness = witness_of(files)
    nodes = [_node(files, number, witness) for number in order]
    reference = max((node for node in nodes if node.cpus and node.memory), key=lambda node: node.memory, default=None)
    nodes = [kind_of(node, reference, witness) for node in nodes]
    distances = [_row(files, number, order, online or order) for number in order]
    return Nodes(nodes, distances, True, files.numbers(f"{NODES}/possible") or order)


def _node(files: Files, number: int, witness: Witness) -> Node:
    folder = f"{NODES}/node{number}"
    meminfo = {}
    for name, value in files.fields(f"{folder}/meminfo").items():
        meminfo[name.rpartition(" ")[2]] = kilobytes(value) or 0
    return Node(
        number,
        files.numbers(f"{folder}/cpulist") or [],
        meminfo.get("MemTotal", 0),
        meminfo.get("MemFree", 0),
        meminfo.get("Inactive(file)", 0),
        "",
        "",
        witness.tiers.get(number),
        meminfo.get("AnonHugePages", 0),
        files.number(f"/sys/kernel/mm/mempolicy/weighted_interleave/node{number}"),
        performance_of(files, folder),
        _initiators(files, folder),
        _huge_pages(files, f"{folder}/hugepages"),
    )


def _initiators(files: Files, folder: str) -> list[int]:
    """access1 counts CPUs only; kernels before 5.19 have access0 alone."""
    for access in ("access1", "access0"):
        found = [number for name in files.names(f"{folder}/{access}/initiators", "node") if (number := ending_number(name)) is not None]
        if found:
            return found
    return []


def _huge_pages(files: Files, folder: str) -> list[HugePages]:
    found = []
    for name in files.names(folder, "hugepages-"):
        size = as_number(name.removeprefix("hugepages-").removesuffix("kB"))
        total = files.number(f"{folder}/{name}/nr_hugepages")
        if size and total is not None:
            found.append(HugePages(size << 10, total, files.number(f"{folder}/{name}/free_hugepages") or 0))
    return sorted(found, key=lambda pages: pages.size)


def _row(files: Files, number: int, order: list[int], online: list[int]) -> list[int]:
    """A node's file lists its distance to each online node, in order of number."""
    words = (files.text(f"{NODES}/node{number}/distance") or "").split()
    said = dict(zip(online, (int(word) for word in words if word.isdecimal())))
    return [said.get(other) or (LOCAL if other == number else REMOTE) for other in order]


def _whole_machine(files: Files) -> Node:
    """For a kernel without nodes, or a container without /sys."""
    meminfo = files.fields("/proc/meminfo")
    memory, free, cache = (kilobytes(meminfo.get(name)) or 0 for name in ("MemTotal", "MemFree", "Inactive(file)"))
    return Node(0, online_cpus(files), memory, free, cache, "DRAM", "", None, kilobytes(meminfo.get("AnonHugePages")) or 0, None, None, [])


def online_cpus(files: Files) -> list[int]:
    if (found := files.numbers("/sys/devices/system/cpu/online")) is not None and found:
        return found
    lines = (files.text("/proc/cpuinfo") or "").splitlines()
    found = [number for line in lines if line.startswith("processor") and (number := as_number(line.partition(":")[2])) is not None]
    try:
        return found or numbers(files.fields("/proc/self/status").get("Cpus_allowed_list", ""))
    except ValueError:
        return []
