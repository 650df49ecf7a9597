"""Several instances of one program, each on a node: their list, and the files to which they write."""

import errno
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from numalloc_tools.launch.nodes import Nodes
from numalloc_tools.machine.calls import Affinity, Call, MemoryPolicy
from numalloc_tools.problem import Problem

PER_NODE = "per-node"
_MOST = 4096


@dataclass(frozen=True)
class Instance:
    number: int
    node: int
    calls: tuple[Call, ...]

    @property
    def environment(self) -> dict[str, str]:
        """Variables from which an instance can derive ports and folders of its own."""
        return {"NUMALLOC_INSTANCE": str(self.number), "NUMALLOC_NODE": str(self.node)}

    @property
    def label(self) -> str:
        return f"instance {self.number} on node {self.node}"


def planned(text: str, machine: Nodes, bind_memory: bool) -> list[Instance]:
    """Distributes the instances over the nodes with CPUs. Binds their memory unless the user chose a placement."""
    nodes = sorted(machine.cpus)
    if text == PER_NODE:
        count = len(nodes)
    elif re.fullmatch("[0-9]+", text) and 1 <= int(text) <= _MOST:
        count = int(text)
    else:
        raise Problem(f"--instances: '{text}' is not understood; accepted: {PER_NODE}, or a number from 1 to {_MOST}")
    found = []
    for number in range(count):
        node = nodes[number % len(nodes)]
        calls: list[Call] = []
        if not machine.one:
            calls.append(Affinity(machine.cpus[node]))
            if bind_memory:
                calls.append(MemoryPolicy("MPOL_BIND", (machine.nearest_memory(node),)))
        found.append(Instance(number, node, tuple(calls)))
    if not machine.one and bind_memory:
        _require_policy(found[0])
    return found


def _require_policy(instance: Instance) -> None:
    for call in instance.calls:
        if isinstance(call, MemoryPolicy) and (error := call.refusal()):
            name = errno.errorcode.get(error, error)
            raise Problem(f"--instances: the kernel refuses {call} ({name}); in a container, the seccomp filter must allow this call")


def log_files(folder: Path, number: int) -> dict[str, IO]:
    """Arguments for Popen."""
    try:
        return {f"std{name}": open(folder / f"{number}.{name}", "wb") for name in ("out", "err")}
    except OSError as error:
        raise Problem(f"--logs: {error.filename} cannot be written ({error.strerror}); accepted: a writable folder") from None


def folder_for_logs(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem(f"--logs: {path} cannot be made ({error.strerror}); accepted: a folder") from None
    return path
