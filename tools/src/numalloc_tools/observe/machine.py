"""The nodes of this machine, and which CPU is on which."""

from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path("/sys/devices/system/node")


@dataclass(frozen=True)
class Machine:
    nodes: tuple[int, ...]
    node_of_cpu: dict[int, int]

    def node_of(self, cpu: int) -> int:
        return self.node_of_cpu.get(cpu, self.nodes[0])


def machine(folder: Path = _FOLDER) -> Machine:
    nodes, cpus = [], {}
    for path in folder.glob("node[0-9]*"):
        node = int(path.name.removeprefix("node"))
        nodes.append(node)
        cpus |= dict.fromkeys(numbers((path / "cpulist").read_text()), node)
    return Machine(tuple(sorted(nodes)) or (0,), cpus)


def numbers(text: str) -> set[int]:
    """The kernel's lists: '0-2,5' -> {0, 1, 2, 5}."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            found.update(range(int(first), int(last or first) + 1))
    return found
