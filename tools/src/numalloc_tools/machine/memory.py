"""A process's memory, and its nodes, as the kernel tells them."""

import ctypes
import os
import platform
import re
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from numalloc_tools import processes

_PAGE = os.sysconf("SC_PAGE_SIZE")
_MOVE_PAGES = {"x86_64": 279, "aarch64": 239}  # the C library has no function for it
_PRESENT = 1 << 63
_AT_ONCE = 65536  # pages per call
_NODE = re.compile(r"\bN(\d+)=(\d+)")
_KILOBYTES = re.compile(r"kernelpagesize_kB=(\d+)")


@dataclass(frozen=True)
class Placement:
    """Bytes of a process's own memory (heap, stacks, anonymous mappings; no files) on each node."""

    nodes: dict[int, int]
    source: str


def status(pid: int, field: str) -> int:
    """A field of /proc/PID/status in bytes, such as VmHWM, the peak of the resident set."""
    for line in processes.text(pid, "status").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no {field}: it has ended")


def cpu_seconds(pid: int) -> float:
    """User and system time of all its threads so far."""
    fields = processes.stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def online_nodes() -> int:
    return len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1


def placement(pid: int) -> Placement:
    try:
        text = processes.text(pid, "numa_maps")
        # The process goes on after the end of its first thread, which shows none.
        text = text or next(filter(None, map(_of_thread(pid), processes.threads(pid))), "")
    except FileNotFoundError:
        return _asked(pid)
    return Placement(from_numa_maps(text), "numa_maps")


def _of_thread(pid: int) -> Callable[[int], str]:
    def text(thread: int) -> str:
        try:
            return processes.text(pid, f"task/{thread}/numa_maps")
        except OSError:  # it has ended
            return ""

    return text


def from_numa_maps(text: str) -> dict[int, int]:
    nodes: Counter[int] = Counter()
    for line in text.splitlines():
        if " file=" in line:
            continue
        size = _KILOBYTES.search(line)
        for node, pages in _NODE.findall(line):
            nodes[int(node)] += int(pages) * (int(size[1]) * 1024 if size else _PAGE)
    return dict(sorted(nodes.items()))


def _asked(pid: int) -> Placement:
    """For a kernel without numa_maps: queries the node of each resident page by move_pages(2)."""
    resident = _resident_pages(pid)
    call = _MOVE_PAGES.get(platform.machine())
    libc = ctypes.CDLL(None, use_errno=True)
    nodes: Counter[int] = Counter()
    for start in range(0, len(resident), _AT_ONCE):
        some = resident[start : start + _AT_ONCE]
        addresses = (ctypes.c_void_p * len(some))(*some)
        answers = (ctypes.c_int * len(some))()
        if call is None or libc.syscall(
            ctypes.c_long(call), ctypes.c_long(pid), ctypes.c_ulong(len(some)), addresses, None, answers, ctypes.c_long(0)
        ):
            # A kernel without NUMA: all memory is on the single node.
            return Placement({0: len(resident) * _PAGE}, "resident pages; this kernel has no memory nodes")
        for node in answers:
            if node >= 0:
                nodes[node] += _PAGE
    return Placement(dict(sorted(nodes.items())), "move_pages; this kernel has no numa_maps")


def _resident_pages(pid: int) -> list[int]:
    resident = []
    with open(f"/proc/{pid}/pagemap", "rb") as pagemap:
        for line in processes.text(pid, "maps").splitlines():
            fields = line.split(maxsplit=5)
            if fields[4] != "0" or (len(fields) == 6 and fields[5] in ("[vvar]", "[vdso]", "[vsyscall]")):
                continue
            begin, end = (int(address, 16) for address in fields[0].split("-"))
            for first in range(begin, end, _AT_ONCE * _PAGE):
                count = min(_AT_ONCE, (end - first) // _PAGE)
                pagemap.seek(first // _PAGE * 8)
                entries = pagemap.read(count * 8)
                for index, (entry,) in enumerate(struct.iter_unpack("<Q", entries)):
                    if entry & _PRESENT:
                        resident.append(first + index * _PAGE)
    return resident
