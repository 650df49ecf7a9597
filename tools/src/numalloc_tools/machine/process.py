"""CPUs, nodes, limits and privileges of a process, from /proc."""

import re
from dataclasses import dataclass

from numalloc_tools.machine import cgroups
from numalloc_tools.machine.files import Files, as_number
from numalloc_tools.machine.lists import numbers
from numalloc_tools.machine.nodes import online_cpus

SECCOMP: dict[int | None, str] = {0: "off", 1: "strict", 2: "a filter"}
_LIMITS = {
    "address_space": "Max address space",
    "data": "Max data size",
    "locked": "Max locked memory",
    "processes": "Max processes",
    "stack": "Max stack size",
}
_SYS_NICE = 23


@dataclass(frozen=True)
class Process:
    number: int | None
    name: str
    threads: int
    # Online CPUs that its threads may use, some of them each: numalloc binds threads. The kernel's lists include CPUs that
    # could be plugged in.
    cpus: list[int]
    mems: list[int]  # nodes from which its memory may come
    seccomp: int | None
    seccomp_filters: int | None
    no_new_privileges: bool
    may_nice: bool  # CAP_SYS_NICE, with which container run-times allow calls about nodes
    locked: int  # bytes
    swapped: int
    limits: dict[str, int | None]  # bytes or a count; None: unlimited
    cgroup: cgroups.Cgroup


def read(files: Files, process: str = "self") -> Process:
    online = set(online_cpus(files))
    status = files.fields(f"/proc/{process}/status")

    def listed(name: str, of: dict[str, str] = status) -> list[int]:
        try:
            return numbers(of.get(name, ""))
        except ValueError:
            return []

    threads = [files.fields(f"/proc/{process}/task/{thread}/status") for thread in files.names(f"/proc/{process}/task")]
    cpus = {cpu for one in (status, *threads) for cpu in listed("Cpus_allowed_list", one)}

    def bytes_of(name: str) -> int:
        return (as_number(status.get(name)) or 0) * 1024

    capabilities = int(status.get("CapEff", "0") or "0", 16)
    return Process(
        as_number(status.get("Pid")),
        status.get("Name", ""),
        as_number(status.get("Threads")) or 1,
        sorted(cpus & online),
        listed("Mems_allowed_list"),
        as_number(status.get("Seccomp")),
        as_number(status.get("Seccomp_filters")),
        status.get("NoNewPrivs") == "1",
        bool(capabilities >> _SYS_NICE & 1),
        bytes_of("VmLck"),
        bytes_of("VmSwap"),
        _limits(files, process),
        cgroups.read(files, process),
    )


def _limits(files: Files, process: str) -> dict[str, int | None]:
    """The soft limits."""
    text = files.text(f"/proc/{process}/limits") or ""
    found = {}
    for name, title in _LIMITS.items():
        match = re.search(rf"^{title}\s+(\S+)", text, re.MULTILINE)
        found[name] = as_number(match[1]) if match else None
    return found
