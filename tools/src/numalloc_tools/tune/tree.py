"""The memory of a program and the processes that it started, from /proc while they run."""

from collections import Counter
from dataclasses import dataclass

from numalloc_tools import processes
from numalloc_tools.machine.memory import from_numa_maps

_LAST_CPU = 36  # field of /proc/PID/stat, counted after the name


def _fields(pid: int, name: str, wanted: tuple[str, ...]) -> dict[str, int]:
    found = dict.fromkeys(wanted, 0)
    try:
        for line in processes.text(pid, name).splitlines():
            field, colon, value = line.partition(":")
            if colon and field in found:
                found[field] = int(value.split()[0]) * 1024
    except (OSError, IndexError, ValueError):  # ended before or during the read
        pass
    return found


def resident(pids: list[int]) -> int:
    """One process: its peak so far. Several: their current memory, with shared pages counted once."""
    held = [_fields(pid, "status", ("VmHWM", "RssAnon", "RssFile", "RssShmem")) for pid in pids]
    if len(held) == 1:
        return held[0]["VmHWM"]
    return sum(one["RssAnon"] for one in held) + max(one["RssFile"] for one in held) + max(one["RssShmem"] for one in held)


@dataclass
class Places:
    """A sample of the nodes of memory and threads. Which thread uses which page is not visible from outside."""

    pages: Counter[int]  # bytes on each node
    threads: Counter[int]  # threads that last ran there
    huge: int  # bytes on huge pages

    def fullest(self) -> float:
        return max(self.pages.values()) / total if (total := sum(self.pages.values())) else 0.0

    def unattended(self) -> float:
        """The fraction of memory on nodes where no thread ran: all of it is remote."""
        total = sum(self.pages.values())
        return sum(held for node, held in self.pages.items() if not self.threads[node]) / total if total else 0.0


def places(pids: list[int], node_of_cpu: dict[int, int]) -> Places:
    found = Places(Counter(), Counter(), 0)
    for pid in pids:
        found.huge += _fields(pid, "smaps_rollup", ("AnonHugePages",))["AnonHugePages"]
        try:
            found.pages.update(from_numa_maps(processes.text(pid, "numa_maps")))
        except OSError:
            pass
        for fields in processes.threads(pid).values():
            found.threads[node_of_cpu.get(int(fields[_LAST_CPU]), 0)] += 1
    return found
