"""Reads one moment of a process from /proc."""

import os
import re
import time
from pathlib import Path

from numalloc_tools.machine.online import Machine
from numalloc_tools.observe import numa_maps, page
from numalloc_tools.observe.model import Memory, Moment, NodeMemory, Thread
from numalloc_tools.processes import refusal

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
_KILOBYTES = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)
_MIGRATIONS = re.compile(r"^se\.nr_migrations\s*:\s*(\d+)$", re.MULTILINE)
_GROUP = re.compile(r"^Tgid:\s+(\d+)$", re.MULTILINE)
_HUGE = ("AnonHugePages", "ShmemPmdMapped")
# Fields of /proc/PID/stat, counted from the state, which is the first after the name.
_STATE, _FLAGS, _MINOR, _MAJOR, _USER, _SYSTEM, _START, _CPU = 0, 6, 7, 9, 11, 12, 19, 36
_KERNEL_THREAD = 0x0020_0000  # of the flags; Linux calls it PF_KTHREAD


class Unseen(Exception):
    """A process that cannot be inspected."""

    def __init__(self, pid: int, reason: str):
        super().__init__(f"process {pid} {reason}")


class Gone(Unseen):
    """The process has ended, or never existed."""

    def __init__(self, pid: int):
        super().__init__(pid, "does not exist, or has ended")


def moment(pid: int, machine: Machine, proc: Path = PROC) -> Moment:
    folder = proc / str(pid)
    try:
        return _moment(pid, folder, machine)
    except (FileNotFoundError, ProcessLookupError):
        raise Gone(pid) from None
    except PermissionError:
        raise Unseen(pid, refusal(folder)) from None


def _moment(pid: int, folder: Path, machine: Machine) -> Moment:
    name, first = stat_of(folder)
    at, up = time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)
    shown = _with_memory(pid, folder, first)
    status_text = _text(shown / "status")
    if (group := _GROUP.search(status_text)) and int(group[1]) != pid:
        raise Unseen(pid, f"is a thread of process {group[1]}; accepted: the PID of a process")
    status = _kilobytes(status_text)
    if "VmRSS" not in status:
        if not int(first[_FLAGS]) & _KERNEL_THREAD:  # it ends: its memory goes before its state says so
            raise Gone(pid)
        raise Unseen(pid, "is a kernel thread, which has no memory of its own; accepted: the PID of a program")
    maps_text = _text_if_any(shown / "numa_maps")
    maps = numa_maps.parse(maps_text, _PAGE_SIZE) if maps_text is not None else None
    threads = _threads(folder, machine)
    memory = _memory(shown, status)
    library = page.of(pid, shown, int(first[_START]))
    _, last = stat_of(folder)
    if stat_of(shown)[1][_STATE] in "ZX" or last[_START] != first[_START]:  # it ended while its memory was read
        raise Gone(pid)
    return Moment(
        pid=pid,
        name=name,
        started=int(first[_START]),
        age=max(0.0, up - int(first[_START]) / TICKS),
        at=at,
        under_numalloc=library is not None or (maps is not None and maps.under_numalloc),
        memory=memory,
        nodes=maps.nodes if maps else _on_the_only_node(memory, machine),
        policies=maps.policies if maps else {},
        threads=threads,
        cpu_seconds=(int(last[_USER]) + int(last[_SYSTEM])) / TICKS,
        minor_faults=int(last[_MINOR]),
        major_faults=int(last[_MAJOR]),
        page=library,
        other_malloc=maps.other_malloc if maps else "",
    )


def stat_of(folder: Path) -> tuple[str, list[str]]:
    """The name, which may contain any character, and the fields after it."""
    before, _, after = _text(folder / "stat").rpartition(")")
    return before.partition("(")[2], after.split()


def started(pid: int) -> int | None:
    """The start of a running process: with the PID, it identifies a process permanently."""
    folder = PROC / str(pid)
    try:
        _, fields = stat_of(folder)
        _with_memory(pid, folder, fields)
        return int(fields[_START])
    except (OSError, Gone):
        return None


def _with_memory(pid: int, folder: Path, fields: list[str]) -> Path:
    """The folder in which the kernel shows its memory: that of its first thread or, if that has ended, of another one."""
    if fields[_STATE] not in "ZX":
        return folder
    for task in (folder / "task").iterdir():
        try:
            if stat_of(task)[1][_STATE] not in "ZX":
                return task
        except (FileNotFoundError, ProcessLookupError):
            continue
    raise Gone(pid)


def _memory(folder: Path, status: dict[str, int]) -> Memory:
    # A kernel without the sum over all mappings may have them one by one.
    mappings = _text_if_any(folder / "smaps_rollup") or _text_if_any(folder / "smaps")
    huge = _kilobytes(mappings) if mappings else {}
    return Memory(
        resident=status["VmRSS"],
        peak=status.get("VmHWM", status["VmRSS"]),
        anonymous=status.get("RssAnon", status["VmRSS"]),
        files=status.get("RssFile", 0),
        shared=status.get("RssShmem", 0),
        hugetlb=status.get("HugetlbPages", 0),
        swapped=status.get("VmSwap", 0),
        huge=sum(huge.get(name, 0) for name in _HUGE) if _HUGE[0] in huge else None,
    )


def _on_the_only_node(memory: Memory, machine: Machine) -> dict[int, NodeMemory] | None:
    """For a kernel without numa_maps: on one node all memory is there, on several its node is unknown."""
    if len(machine.nodes) > 1:
        return None
    return {machine.nodes[0]: NodeMemory(memory.anonymous + memory.shared, memory.files)}


def _threads(folder: Path, machine: Machine) -> tuple[Thread, ...]:
    found = []
    for task in sorted((folder / "task").iterdir(), key=lambda path: int(path.name)):
        try:
            name, fields = stat_of(task)
            schedule = _text_if_any(task / "sched") or ""
            ran = (_text_if_any(task / "schedstat") or "0").split()[0]
        except (FileNotFoundError, ProcessLookupError):  # the thread has ended since
            continue
        ticks = int(fields[_USER]) + int(fields[_SYSTEM])
        moves = _MIGRATIONS.search(schedule)
        cpu = int(fields[_CPU])
        seconds = int(ran) / 1e9 if int(ran) else ticks / TICKS
        found.append(Thread(int(task.name), name, cpu, machine.node_of(cpu), seconds, int(moves[1]) if moves else None))
    return tuple(found)


def _kilobytes(text: str) -> dict[str, int]:
    """Lines such as 'VmRSS: 12 kB', in bytes; lines of the same name are added."""
    found: dict[str, int] = {}
    for name, count in _KILOBYTES.findall(text):
        found[name] = found.get(name, 0) + int(count) * 1024
    return found


def _text(path: Path) -> str:
    return path.read_text(errors="replace")


def _text_if_any(path: Path) -> str | None:
    try:
        return _text(path)
    except FileNotFoundError:
        return None
