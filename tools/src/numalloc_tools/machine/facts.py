"""The machine as a whole."""

import platform
from dataclasses import asdict, dataclass

from numalloc_tools.machine import kernel, nodes, permissions, process, processor, settings
from numalloc_tools.machine.files import Files


@dataclass(frozen=True)
class Machine:
    name: str
    kernel: kernel.Kernel
    processor: processor.Processor
    nodes: nodes.Nodes
    settings: settings.Settings
    process: process.Process  # this process: a program that it starts may use the same
    permissions: list[permissions.Permission]

    @property
    def memory(self) -> int:
        return sum(node.memory for node in self.nodes)

    def as_json(self) -> dict:
        found = asdict(self)
        # In JSON, nodes and distances are members of the machine.
        found["distances"] = found["nodes"]["distances"]
        found["nodes"] = found["nodes"]["nodes"]
        found["nodes_from_sysfs"] = self.nodes.from_sysfs
        return found


def read(files: Files) -> Machine:
    own = process.read(files)
    name = files.text("/proc/sys/kernel/hostname") or (platform.node() if files.real else "")
    return Machine(
        name,
        kernel.read(files),
        processor.read(files),
        nodes.read(files),
        settings.read(files),
        own,
        permissions.tried(files, own),
    )
