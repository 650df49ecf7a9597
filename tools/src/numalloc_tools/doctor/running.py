"""A running process: where its threads and its memory are, and whether it may be inspected."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from numalloc_tools.doctor import maps, presence
from numalloc_tools.doctor.finding import NOTE, OK, WARNING, Case, Finding
from numalloc_tools.machine.files import Files
from numalloc_tools.machine.lists import numbers, ranges
from numalloc_tools.machine.words import size
from numalloc_tools.problem import Problem
from numalloc_tools.processes import refusal

_NEARLY = 0.8
_ONE_SIDED = 0.8
_LITTLE = 64 << 20  # bytes of which it does not matter where they are
_TELLING_SWAP = 0.1
_NODE = re.compile(r"\bN(\d+)=(\d+)")
_PAGE = re.compile(r"kernelpagesize_kB=(\d+)")


def require(process: int) -> None:
    """Checks that the process runs, has a program, and may be inspected."""
    folder = Path(f"/proc/{process}")
    if not folder.is_dir():
        raise Problem(f"{process}: there is no such process; accepted: the number of a running process, or -- PROGRAM")
    try:
        os.readlink(folder / "exe")
        (folder / "maps").read_text(errors="replace")
    except PermissionError:
        raise Problem(f"{process}: this process {refusal(folder)}") from None
    except (FileNotFoundError, ProcessLookupError):
        if living := _living_thread(folder):
            what = f"{process}: its first thread has ended, so the kernel no longer shows the process under this number"
            raise Problem(f"{what}; accepted: the number of a running thread, here {living}") from None
        raise Problem(f"{process} is a kernel thread or has ended; accepted: a process with a program") from None


def _living_thread(folder: Path) -> str | None:
    tasks = (folder / "task").glob("*/exe")
    return next((task.parent.name for task in tasks if task.is_symlink() and task.exists()), None)


def environment(process: int) -> dict[str, str]:
    """The environment at the program's start."""
    try:
        text = Path(f"/proc/{process}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def check(case: Case, process: int, files: Files) -> Iterator[Finding]:
    mappings = maps.read(process)
    ours = presence.library_of(mappings) is not None
    yield from presence.check(case, process, mappings)
    places = _places(case, process, files)
    yield from _threads(case, places, ours)
    yield from _memory(case, process, ours, places)
    yield from _mappings(case, len(mappings))


def _places(case: Case, process: int, files: Files) -> Counter[str]:
    """The threads by the nodes on which they may run."""
    masks: Counter[str] = Counter()
    for thread in files.names(f"/proc/{process}/task"):
        masks[files.fields(f"/proc/{process}/task/{thread}/status").get("Cpus_allowed_list", "")] += 1
    places: Counter[str] = Counter()
    for mask, threads in masks.items():
        cpus = set(numbers(mask)) if mask else set()
        nodes = [node.number for node in case.machine.nodes if cpus & set(node.cpus)]
        places[ranges(nodes)] += threads
    return places


def _threads(case: Case, places: Counter[str], ours: bool) -> Iterator[Finding]:
    total = sum(places.values())
    if total < 2 or not case.several_nodes:
        return
    words = ", ".join(
        f"{threads} on {'node' if place.isdecimal() else 'nodes'} {place or '?'}" for place, threads in sorted(places.items())
    )
    bound = sum(threads for place, threads in places.items() if place.isdecimal())
    if ours and not bound and case.option("binding") != "none":
        yield Finding(
            NOTE,
            "threads",
            f"No thread is bound to a node: {words}",
            "The program or its user has set an affinity, which wins, or the kernel refused the library's.",
            ["NUMALLOC_VERBOSE=1 reports refusals at the start"],
        )
    else:
        yield Finding(OK, "threads", f"{total} threads: {words}")


def _one_sided(case: Case, placed: Counter[int], places: Counter[str]) -> Iterator[Finding]:
    """One thread has set up what threads on all nodes work on."""
    node, most = placed.most_common(1)[0]
    total = sum(placed.values())
    elsewhere = sum(threads for place, threads in places.items() if place.isdecimal() and int(place) != node)
    bound = sum(threads for place, threads in places.items() if place.isdecimal())
    if most < _LITTLE or most < _ONE_SIDED * total or 2 * elsewhere <= bound:
        return
    balances = case.machine.settings.autonuma
    yield Finding(
        NOTE,
        "one-sided",
        f"{100 * most / total:.0f} % of its memory is on node {node}, and {elsewhere} of {bound} bound threads run on other nodes",
        "If one thread has set up what all work on, most of it is remote, and one node's memory serves all.",
        [
            "numalloc run --memory first-touch, if the threads write their parts first; else --memory interleave",
            "psm_alloc() puts each thread's part on its node",
            *([] if balances else ["sysctl kernel.numa_balancing=1 lets blocks of 16 MiB and more follow their users (Linux 5.17)"]),
        ],
    )


def _memory(case: Case, process: int, ours: bool, places: Counter[str]) -> Iterator[Finding]:
    try:
        text = Path(f"/proc/{process}/numa_maps").read_text(errors="replace")
    except OSError:
        return
    placed: Counter[int] = Counter()
    policies: Counter[str] = Counter()
    for line in text.splitlines():
        words = line.split()
        if " file=" in line or len(words) < 2:
            continue
        page = _PAGE.search(line)
        held = 0
        for node, pages in _NODE.findall(line):
            placed[int(node)] += int(pages) * (int(page[1]) << 10 if page else 4096)
            held += int(pages) * (int(page[1]) << 10 if page else 4096)
        policies[words[1].partition(":")[0]] += held
    if case.several_nodes and placed:
        where = ", ".join(f"{size(held)} on node {node}" for node, held in sorted(placed.items()))
        how = ", ".join(f"{size(held)} {policy}" for policy, held in policies.most_common() if held)
        if ours and set(policies) <= {"default", "local"}:
            yield Finding(
                WARNING,
                "placement",
                f"No memory is bound to a node: {where}",
                "The kernel refused mbind, or memory_binding=none: each page is on the node of its first touch.",
                ["numalloc doctor, run in the same container, reports refused calls"],
            )
        else:
            yield Finding(OK, "placement", f"Its own memory: {where}; by policy: {how}")
        yield from _one_sided(case, placed, places)
    status = case.process
    if status.locked:
        yield Finding(
            NOTE,
            "locked",
            f"{size(status.locked)} are locked (mlock)",
            "Free memory that is locked is not returned to the system.",
        )
    resident = sum(placed.values())
    if status.swapped > _TELLING_SWAP * max(resident, 1):
        yield Finding(
            WARNING,
            "swapped",
            f"{size(status.swapped)} of the process are swapped out",
            "Reading a page back needs the disk.",
            ["Give the machine or the cgroup more memory"],
        )


def _mappings(case: Case, held: int) -> Iterator[Finding]:
    most = case.machine.settings.max_map_count
    if most and held > _NEARLY * most:
        yield Finding(
            WARNING,
            "mappings",
            f"{held} of {most} mappings are used up",
            "At the limit mmap fails, and so does malloc of large blocks.",
            [f"sysctl vm.max_map_count={4 * most}"],
        )


def runnable(process: int, files: Files) -> int:
    """The threads that are running or runnable now; waiting threads use no CPU."""
    states = (files.text(f"/proc/{process}/task/{thread}/stat") for thread in files.names(f"/proc/{process}/task"))
    return sum((state or "").rpartition(")")[2].split()[:1] == ["R"] for state in states)
