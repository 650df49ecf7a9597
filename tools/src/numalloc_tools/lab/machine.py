"""The machine asked for: nodes, their CPUs and memory, how far apart they are; and QEMU's words for it."""

from dataclasses import dataclass

from numalloc_tools.problem import Problem

MAX_NODES = 32
MAX_CPUS = 255  # QEMU 7.2 has no x2apic under TCG: APIC ids are one byte, and 255 means "all"
LARGEST_FLAT = 8  # CPUs that the kernel addresses by one bit each
MEMORY_UNIT = 1 << 20
LEAST_MEMORY = 128 << 20  # below this the kernel and the file system image do not fit


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

    def __post_init__(self) -> None:
        if not 2 <= len(self.nodes) <= MAX_NODES:
            raise Problem(f"--nodes: {len(self.nodes)} is out of range; accepted: 2 to {MAX_NODES}")
        if self.cpus > MAX_CPUS:
            raise Problem(f"--cpus-per-node: {self.cpus} CPUs in all; accepted: up to {MAX_CPUS}")
        if self.nodes[0].cpus == 0:
            raise Problem("--cpus-per-node: node 0 has none; the machine starts on a CPU of node 0, so it needs at least 1")
        if self.slots > MAX_CPUS:
            raise Problem(
                f"--cpus-per-node: {self.cpus} CPUs and {self.slots - self.cpus} nodes without CPUs; "
                f"accepted: up to {MAX_CPUS} together"
            )
        for number, node in enumerate(self.nodes):
            if node.memory % MEMORY_UNIT:
                raise Problem(f"--memory-per-node: {node.memory} bytes on node {number}; accepted: whole megabytes")
        if self.memory < LEAST_MEMORY:
            raise Problem(
                f"--memory-per-node: {self.memory >> 20}M in all; accepted: at least {LEAST_MEMORY >> 20}M in all"
            )

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
        """CPUs that the kernel is told to prepare for. With up to 8 it would address them by one bit
        each, which QEMU 7.2 does not deliver beyond a gap in the APIC ids: the machine would hang."""
        places, _ = self._places()
        ids = [(socket, core) for _, socket, core, present in places if present]
        cores = max(core for _, core in ids) + 1
        dense = len(ids) == len(places) and cores & (cores - 1) == 0
        return self.cpus if dense else max(self.cpus, LARGEST_FLAT + 1)

    def qemu_arguments(self, cpu_model: str, cpu_flags: str) -> list[str]:
        places, topology = self._places()
        arguments = ["-m", f"{self.memory >> 20}M", "-smp", f"1,{topology}"]
        for number, node in enumerate(self.nodes):
            backing = ""
            if node.memory:
                arguments += ["-object", f"memory-backend-ram,id=memory{number},size={node.memory}"]
                backing = f",memdev=memory{number}"
            arguments += ["-numa", f"node,nodeid={number}{backing}"]
        for number, socket, core, _ in places:
            arguments += ["-numa", f"cpu,node-id={number},socket-id={socket},core-id={core},thread-id=0"]
        for index, (_, socket, core, present) in enumerate(places):
            if present and index > 0:  # the first CPU is the one that the machine starts on
                arguments += ["-device", f"{cpu_model}-x86_64-cpu,socket-id={socket},core-id={core},thread-id=0{cpu_flags}"]
        for source, row in enumerate(self.distances):
            for target, distance in enumerate(row):
                arguments += ["-numa", f"dist,src={source},dst={target},val={distance}"]
        return arguments

    def _places(self) -> tuple[list[tuple[int, int, int, bool]], str]:
        """(node, socket, core, whether a CPU is there), in order: a socket a node where that fits
        into APIC ids, which round the cores of a socket up to a power of two; else a socket a CPU."""
        cores = max(1, *(node.cpus for node in self.nodes))
        rounded = 1 << (cores - 1).bit_length()
        if len(self.nodes) * rounded <= MAX_CPUS:
            places = [
                (number, number, core, core < node.cpus)
                for number, node in enumerate(self.nodes)
                for core in range(cores)
            ]
            return places, f"maxcpus={len(places)},sockets={len(self.nodes)},cores={cores},threads=1"
        owners = [
            (number, core < node.cpus) for number, node in enumerate(self.nodes) for core in range(max(1, node.cpus))
        ]
        places = [(number, socket, 0, present) for socket, (number, present) in enumerate(owners)]
        return places, f"maxcpus={len(places)},sockets={len(places)},cores=1,threads=1"
