"""The facts about a machine that its results need."""

import os
import platform
from pathlib import Path


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _processor() -> str:
    for line in _text("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def facts() -> dict:
    nodes = sorted(int(path.name[4:]) for path in Path("/sys/devices/system/node").glob("node[0-9]*"))
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": _memory_bytes(),
        "nodes": len(nodes) or 1,
        "kernel": platform.release(),
        "system": _system(),
        "libc": os.confstr("CS_GNU_LIBC_VERSION") or "",
        "huge_pages": _text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "numa_balancing": _text("/proc/sys/kernel/numa_balancing"),
        "overcommit": _text("/proc/sys/vm/overcommit_memory"),
        "load_at_start": os.getloadavg()[0],
        "python": platform.python_version(),
    }


def _system() -> str:
    for line in _text("/etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return platform.system()
