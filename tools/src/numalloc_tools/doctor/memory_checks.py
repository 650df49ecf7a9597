"""The kernel's settings that move, merge or reserve memory."""

from collections.abc import Iterator

from numalloc_tools.doctor.finding import NOTE, OK, WARNING, Case, Finding
from numalloc_tools.machine.lists import ranges
from numalloc_tools.machine.permissions import BIND, HOME, KILLED, REFUSED, of
from numalloc_tools.machine.words import size

_TELLING_SWAP = 0.1
_TELLING_RESERVE = 0.1  # of a node's memory


def check(case: Case) -> Iterator[Finding]:
    for one in (_autonuma, _huge_pages, _reserved, _zone_reclaim, _swap, _merging):
        yield from one(case)


def binds(case: Case) -> bool:
    """Whether the library can bind its memory to nodes in this process."""
    return of(case.machine.permissions, BIND).answer not in (REFUSED, KILLED) and case.option("memory_binding") != "none"


def _autonuma(case: Case) -> Iterator[Finding]:
    mode = case.machine.settings.autonuma
    if not case.several_nodes or not mode:
        if case.several_nodes:
            yield Finding(OK, "autonuma", "AutoNUMA is off")
        return
    mend = ["sysctl kernel.numa_balancing=0"]
    if binds(case):
        follow = (
            mode & 1
            and of(case.machine.permissions, HOME).answer not in (REFUSED, KILLED)
            and case.option("memory_binding") == "preferred"
            and case.option("memory") == "local"
        )
        yield Finding(
            NOTE,
            "autonuma",
            "AutoNUMA is on",
            (
                "It moves the library's blocks of 16 MiB and more to the nodes of the threads that use them"
                if follow
                else "It moves none of the library's memory here (Linux 5.17 and a local placement let it move large blocks)"
            )
            + ", and not its other memory, which is bound, nor bound threads. It samples what it may move by page faults, the "
            "program's stacks and own mappings, too.",
            mend,
        )
    else:
        yield Finding(
            WARNING,
            "autonuma",
            "AutoNUMA is on, and the library's memory is not bound here",
            "Threads are bound, so it gains little. But a page moves to a node that touches it twice, even if a thread there "
            "only frees a block on it: memory becomes remote.",
            mend,
        )


def _huge_pages(case: Case) -> Iterator[Finding]:
    pages, option = case.machine.settings.huge_pages, case.option("thp")
    if option == "off":
        yield Finding(NOTE, "huge-pages", "NUMALLOC_THP=off: the library forbids huge pages", "More misses of the TLB, less memory.", [])
    elif pages.enabled is None:
        yield Finding(NOTE, "huge-pages", "The kernel has no transparent huge pages", "Programs with much memory miss the TLB more often.")
    elif pages.off_for_us:
        yield Finding(
            WARNING,
            "huge-pages",
            "Huge pages are off for this process and all its children (prctl PR_SET_THP_DISABLE)",
            "The library gets normal pages even if it requests huge ones: programs with much memory miss the TLB more often.",
            ["Start the program from another parent: a service manager or a wrapper has set this, and all its children inherit it"],
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
            "The kernel always gives huge pages, and page faults wait for them (enabled and defrag: always)",
            "When free memory is fragmented, a page fault of any program may wait milliseconds while the kernel compacts a node's memory.",
            [
                "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag",
                "echo defer+madvise > /sys/kernel/mm/transparent_hugepage/defrag",
            ],
        )
    elif option == "system" and pages.rule == "madvise":
        yield Finding(
            NOTE,
            "huge-pages",
            "NUMALLOC_THP=system requests no huge pages, and the kernel gives them only on request",
            "",
            ["NUMALLOC_THP=auto"],
        )
    else:
        asked = (
            "beyond a node's first 64 MiB, where the library requests them"
            if pages.rule == "madvise" and option == "auto"
            else "by the kernel's rule"
        )
        yield Finding(
            OK,
            "huge-pages",
            f"Huge pages: {pages.rule}, so the library's heap has them {asked if option != 'on' else 'beyond the first 8 MiB'}",
        )


def _reserved(case: Case) -> Iterator[Finding]:
    """Pages of hugetlbfs. The library never uses them."""
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
        "malloc cannot use them, nor can the library's: it uses transparent huge pages."
        + (" Nodes with reserved pages are full earlier than others, and spill." if uneven else ""),
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
        "When file cache fills a node, page faults there reclaim some of it before they use the next node's memory, which takes time.",
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
        "Memory was short. Reading it back from swap is slow, and an allocator's lists of free objects may be swapped out too.",
        ["vmstat 1 5 shows in columns si and so whether swapping continues; if it does, the machine needs less load or more memory"],
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
                "Only possible while no page is merged: echo 2 > /sys/kernel/mm/ksm/run; echo 0 > /sys/kernel/mm/ksm/merge_across_nodes;"
                " echo 1 > /sys/kernel/mm/ksm/run"
            ],
        )
