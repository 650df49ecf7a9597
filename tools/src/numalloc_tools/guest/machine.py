"""The requested machine: nodes, their CPUs, memory and distances; and QEMU's arguments for it."""

from dataclasses import dataclass
from itertools import accumulate

from numalloc_tools.guest import distances, values
from numalloc_tools.guest.architecture import AARCH64, Architecture, named
from numalloc_tools.problem import Problem

MAX_NODES = 32
MAX_CPUS = 255  # QEMU 7.2 has no x2apic under TCG: APIC ids are one byte, and 255 means "all"
LARGEST_FLAT = 8  # CPUs that the kernel addresses by one bit each
MEMORY_UNIT = 1 << 20
LEAST_MEMORY = 128 << 20  # with less, the kernel and the file system image do not fit


@dataclass(frozen=True)
class Node:
    cpus: int
    memory: int  # bytes

    @property
    def absent(self) -> bool:
        return self.cpus == 0 and self.memory == 0


@dataclass(frozen=True)
class Machine:
    nodes: tuple[Node, ...]
    distances: tuple[tuple[int, ...], ...]
    architecture: Architecture = named("")

    def __post_init__(self) -> None:
        most = self.architecture.most_nodes
        if not 2 <= len(self.nodes) <= most:
            raise Problem(f"--nodes: {len(self.nodes)} is out of range for {self.architecture.name}; accepted: 2 to {most}")
        if self.architecture is AARCH64 and any(node.absent for node in self.nodes):
            raise Problem("--absent: aarch64 allows no gaps, since its table of distances names every node; accepted: --arch x86_64")
        if self.cpus > MAX_CPUS:
            raise Problem(f"--cpus-per-node: {self.cpus} CPUs in all; accepted: up to {MAX_CPUS}")
        if self.nodes[0].cpus == 0:
            raise Problem("--cpus-per-node: node 0 has none, but the machine boots on a CPU of node 0; accepted: at least 1 on node 0")
        if self.slots > MAX_CPUS:
            raise Problem(
                f"--cpus-per-node: {self.cpus} CPUs and {self.slots - self.cpus} nodes without CPUs; accepted: up to {MAX_CPUS} together"
            )
        for number, node in enumerate(self.nodes):
            if node.memory % MEMORY_UNIT:
                raise Problem(f"--memory-per-node: {node.memory} bytes on node {number}; accepted: whole megabytes")
        if self.memory < LEAST_MEMORY:
            raise Problem(f"--memory-per-node: {self.memory >> 20}M in all; accepted: at least {LEAST_MEMORY >> 20}M in all")

    @property
    def cpus(self) -> int:
        return sum(node.cpus for node in self.nodes)

    @property
    def slots(self) -> int:
        """Places for CPUs. A node without CPUs keeps one place that stays empty: Linux numbers nodes
        in the order in which the firmware's table of CPU places names them, so this keeps
        the numbers asked for, and leaves a gap where a node has no memory either."""
        return sum(max(1, node.cpus) for node in self.nodes)

    @property
    def memory(self) -> int:
        return sum(node.memory for node in self.nodes)

    @property
    def possible_cpus(self) -> int:
        """The number of CPUs that the kernel prepares for. With up to 8 it would address them by one bit
        each, which QEMU 7.2 does not deliver beyond a gap in the APIC ids: the machine would hang."""
        places, _ = self._places()
        ids = [(socket, core) for _, socket, core, present in places if present]
        cores = max(core for _, core in ids) + 1
        dense = len(ids) == len(places) and cores & (cores - 1) == 0
        return self.cpus if dense else max(self.cpus, LARGEST_FLAT + 1)

    def qemu_arguments(self, cpu: str) -> list[str]:
        """`cpu`: the value of -cpu, which is among them."""
        arguments = ["-cpu", cpu, "-m", f"{self.memory >> 20}M"]
        arguments += self._numbered_cpus() if self.architecture is AARCH64 else self._plugged_cpus(cpu)
        for source, row in enumerate(self.distances):
            for target, distance in enumerate(row):
                arguments += ["-numa", f"dist,src={source},dst={target},val={distance}"]
        return arguments

    def _node(self, number: int, rest: str = "") -> list[str]:
        memory = self.nodes[number].memory
        if not memory:
            return ["-numa", f"node,nodeid={number}{rest}"]
        backing = ["-object", f"memory-backend-ram,id=memory{number},size={memory}"]
        return [*backing, "-numa", f"node,nodeid={number},memdev=memory{number}{rest}"]

    def _numbered_cpus(self) -> list[str]:
        """The device tree has each CPU's node, and Linux takes the numbers from there."""
        arguments = ["-smp", str(self.cpus)]
        ends = list(accumulate(node.cpus for node in self.nodes))
        for number, (node, end) in enumerate(zip(self.nodes, ends)):
            arguments += self._node(number, f",cpus={end - node.cpus}-{end - 1}" if node.cpus else "")
        return arguments

    def _plugged_cpus(self, cpu: str) -> list[str]:
        places, topology = self._places()
        arguments = ["-smp", f"1,{topology}"]
        for number in range(len(self.nodes)):
            arguments += self._node(number)
        for number, socket, core, _ in places:
            arguments += ["-numa", f"cpu,node-id={number},socket-id={socket},core-id={core},thread-id=0"]
        model, *flags = cpu.split(",")
        settings = "".join(f",{flag.lstrip('+-')}={'off' if flag.startswith('-') else 'on'}" for flag in flags)
        for index, (_, socket, core, present) in enumerate(places):
            if present and index > 0:  # the machine boots on the first CPU
                arguments += ["-device", f"{model}-x86_64-cpu,socket-id={socket},core-id={core},thread-id=0{settings}"]
        return arguments

    def _places(self) -> tuple[list[tuple[int, int, int, bool]], str]:
        """(node, socket, core, whether a CPU is there), in order: a socket a node where that fits
        into APIC ids, which round the cores of a socket up to a power of two; else a socket a CPU."""
        cores = max(1, *(node.cpus for node in self.nodes))
        rounded = 1 << (cores - 1).bit_length()
        if len(self.nodes) * rounded <= MAX_CPUS:
            places = [(number, number, core, core < node.cpus) for number, node in enumerate(self.nodes) for core in range(cores)]
            return places, f"maxcpus={len(places)},sockets={len(self.nodes)},cores={cores},threads=1"
        owners = [(number, core < node.cpus) for number, node in enumerate(self.nodes) for core in range(max(1, node.cpus))]
        places = [(number, socket, 0, present) for socket, (number, present) in enumerate(owners)]
        return places, f"maxcpus={len(places)},sockets={len(places)},cores=1,threads=1"


def build_machine(nodes, cpus_per_node, memory_per_node, distance, memory_only="", cpu_only="", absent="", arch="") -> Machine:
    if not 2 <= nodes <= 32:
        raise Problem(f"--nodes: {nodes} is out of range; accepted: 2 to 32")
    cpus = values.per_node(cpus_per_node, nodes, "--cpus-per-node", values.count)
    memory = values.per_node(memory_per_node, nodes, "--memory-per-node", values.size)
    for text, what, lists in (
        (memory_only, "--memory-only", (cpus,)),
        (cpu_only, "--cpu-only", (memory,)),
        (absent, "--absent", (cpus, memory)),
    ):
        for number in values.number_list(text, what, nodes) if text else []:
            for per_node in lists:
                per_node[number] = 0
    rows = tuple(tuple(row) for row in distances.matrix(distance, nodes))
    return Machine(tuple(Node(c, m) for c, m in zip(cpus, memory)), rows, named(arch))
