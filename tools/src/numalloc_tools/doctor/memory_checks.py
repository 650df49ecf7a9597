"""The kernel's switches that move memory, join it or take it away."""

from collections.abc import Iterator

from numalloc_tools.doctor.finding import NOTE, OK, WARNING, Case, Finding
from numalloc_tools.machine.lists import ranges
from numalloc_tools.machine.permissions import BIND, KILLED, REFUSED, of
from numalloc_tools.machine.words import size

_TELLING_SWAP = 0.1
_TELLING_RESERVE = 0.1  # of a node's memory


def check(case: Case) -> Iterator[Finding]:
    for one in (_autonuma, _huge_pages, _reserved, _zone_reclaim, _swap, _merging):
        yield from one(case)


def binds(case: Case) -> bool:
    """Whether the library's memory is bound to its nodes in this process."""
    return of(case.machine.permissions, BIND).answer not in (REFUSED, KILLED) and case.option("memory_binding") != "none"


def _autonuma(case: Case) -> Iterator[Finding]:
    mode = case.machine.settings.autonuma
    if not case.several_nodes or not mode:
        if case.several_nodes:
            yield Finding(OK, "autonuma", "AutoNUMA is off")
        return
    mend = ["sysctl kernel.numa_balancing=0"]
    if binds(case):
        yield Finding(
            NOTE,
            "autonuma",
            "AutoNUMA is on",
            "It leaves the library's memory alone, which is bound, and cannot move bound threads. The program's other memory"
            " (stacks,"
            " mappings of its own) is still sampled by page faults, and moved.",
            mend,
        )
    else:
        yield Finding(
            WARNING,
            "autonuma",
            "AutoNUMA is on, and the library's memory is not bound here",
            "Threads are bound, so there is little to win. But a page moves to whoever touches it twice, even if that is a"
            " neighbour that"
            " only frees a block on it: memory becomes remote.",
            mend,
        )


def _huge_pages(case: Case) -> Iterator[Finding]:
    pages, option = case.machine.settings.huge_pages, case.option("thp")
    if option == "off":
        yield Finding(NOTE, "huge-pages", "NUMALLOC_THP=off: the library refuses huge pages", "More misses of the TLB, less memory.", [])
    elif pages.enabled is None:
        yield Finding(NOTE, "huge-pages", "The kernel has no transparent huge pages", "Programs with much memory miss the TLB more often.")
    elif pages.off_for_us:
        yield Finding(
            WARNING,
            "huge-pages",
            "Huge pages are off for this process and all that it starts (prctl PR_SET_THP_DISABLE)",
            "Whatever the library asks for, it gets normal pages: programs with much memory miss the TLB more often.",
            [
                "Start the program from somewhere else: a service manager or a wrapper has set it, and only children of others"
                " are free of it"
            ],
        )
    elif pages.rule == "never":
        where = f"hugepages-{pages.size >> 10}kB/" if pages.of_this_size not in (None, "inherit") else ""
        yield Finding(
            WARNING,
            "huge-pages",
            f"The kernel gives no huge pages of {size(pages.size)} (never)",
            "NUMALLOC_THP cannot change that. Programs with much memory miss the TLB more often.",
            [f"echo madvise > /sys/kernel/mm/transparent_hugepage/{where}enabled"],
        )
    elif pages.defrag == "always" and pages.rule == "always":
        yield Finding(
            WARNING,
            "huge-pages",
            "Huge pages are always given, and waited for (enabled and defrag: always)",
            "A page fault of any program may stop to compact a node's memory, for milliseconds, when free memory is in small pieces.",
            [
                "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag",
                "echo defer+madvise > /sys/kernel/mm/transparent_hugepage/defrag",
            ],
        )
    elif option == "system" and pages.rule == "madvise":
        yield Finding(
            NOTE,
            "huge-pages",
            "NUMALLOC_THP=system does not ask for huge pages, and the kernel gives them to who asks",
            "",
            ["NUMALLOC_THP=auto"],
        )
    else:
        asked = (
            "beyond a node's first 64 MiB, where the library asks for them"
            if pages.rule == "madvise" and option == "auto"
            else "by the kernel's rule"
        )
        yield Finding(
            OK,
            "huge-pages",
            f"Huge pages: {pages.rule}, so the library's heap has them {asked if option != 'on' else 'beyond the first 8 MiB'}",
        )


def _reserved(case: Case) -> Iterator[Finding]:
    """Of hugetlbfs. The library never uses them."""
    held = {node.number: sum(pages.size * pages.total for pages in node.huge_pages) for node in case.machine.nodes.with_memory}
    total = sum(held.values())
    if not total:
        return
    empty = [number for number in case.usable_nodes if not held[number]]
    full = {number: amount for number, amount in held.items() if amount}
    much = any(held[node.number] > _TELLING_RESERVE * node.memory for node in case.machine.nodes.with_memory)
    uneven = case.several_nodes and bool(empty)
    yield Finding(
        WARNING if uneven and much else NOTE,
        "reserved-huge-pages",
        f"{size(total)} are reserved as huge pages"
        + (f", on {'nodes' if len(full) > 1 else 'node'} {ranges(sorted(full))} only" if uneven else ""),
        "Malloc cannot use them, the library's neither: it has transparent huge pages."
        + (" Nodes that hold them are full earlier than the others, and spill." if uneven else ""),
        ["Only if no program needs them: sysctl vm.nr_hugepages=0"]
        + (["Evenly, on each node: echo N > /sys/devices/system/node/nodeN/hugepages/hugepages-2048kB/nr_hugepages"] if uneven else []),
    )


def _zone_reclaim(case: Case) -> Iterator[Finding]:
    if not case.several_nodes:
        return
    if not case.machine.settings.zone_reclaim:
        yield Finding(OK, "zone-reclaim", "A full node spills to the next one (zone_reclaim_mode 0)")
        return
    yield Finding(
        WARNING,
        "zone-reclaim",
        f"zone_reclaim_mode is {case.machine.settings.zone_reclaim}",
        "When a node is full of file cache, page faults there stop to give some of it up, before memory of the next node is taken.",
        ["sysctl vm.zone_reclaim_mode=0"],
    )


def _swap(case: Case) -> Iterator[Finding]:
    settings = case.machine.settings
    used = settings.swap_total - settings.swap_free
    if not settings.swap_total or used < _TELLING_SWAP * settings.swap_total:
        return
    yield Finding(
        WARNING,
        "swap",
        f"{size(used)} of {size(settings.swap_total)} swap are in use",
        "Memory was short. What comes back from swap comes slowly, and an allocator's lists of free objects are among what was"
        " swapped out.",
        ["vmstat 1 5 shows in columns si and so whether it still goes on; if it does, the machine needs less work or more memory"],
    )


def _merging(case: Case) -> Iterator[Finding]:
    merging = case.machine.settings.merging
    if case.several_nodes and merging.running and merging.across_nodes:
        yield Finding(
            NOTE,
            "page-merging",
            "KSM merges equal pages of different nodes",
            "A program whose memory is merged (MADV_MERGEABLE, or systemd's MemoryKSM=yes) then reads pages of other nodes.",
            [
                "Only while nothing is merged: echo 2 > /sys/kernel/mm/ksm/run; echo 0 > /sys/kernel/mm/ksm/merge_across_nodes;"
                " echo 1 > /sys/kernel/mm/ksm/run"
            ],
        )
