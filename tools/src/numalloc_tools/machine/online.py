"""The nodes of this machine, and the node of each CPU."""

from dataclasses import dataclass
from pathlib import Path

from numalloc_tools.machine.lists import numbers
from numalloc_tools.problem import Problem

_FOLDER = Path("/sys/devices/system/node")


@dataclass(frozen=True)
class Machine:
    nodes: tuple[int, ...]
    node_of_cpu: dict[int, int]

    def node_of(self, cpu: int) -> int:
        return self.node_of_cpu.get(cpu, self.nodes[0])


def machine(folder: Path = _FOLDER) -> Machine:
    if not Path("/proc/self").exists():
        raise Problem("/proc, which describes processes, is not visible; accepted: an environment where it is mounted")
    nodes = sorted(int(path.name.removeprefix("node")) for path in folder.glob("node[0-9]*"))
    return Machine(tuple(nodes) or (0,), node_of_cpu(folder))


def node_of_cpu(folder: Path = _FOLDER) -> dict[int, int]:
    """The node of every CPU, including those that this process may not use."""
    lists = {int(path.name.removeprefix("node")): path / "cpulist" for path in folder.glob("node[0-9]*")}
    return {cpu: node for node, path in lists.items() for cpu in numbers(path.read_text())}
