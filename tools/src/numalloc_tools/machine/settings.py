"""The kernel's switches that decide where memory is and how fast it is."""

from dataclasses import dataclass

from numalloc_tools.machine.files import Files, kilobytes

THP = "/sys/kernel/mm/transparent_hugepage"
_HUGE_PAGE = 2 << 20  # if the kernel does not tell


@dataclass(frozen=True)
class TransparentHugePages:
    size: int
    enabled: str | None  # always, madvise, never; None: the kernel has none
    of_this_size: str | None  # the same for pages of `size` alone (since Linux 6.8), or inherit
    defrag: str | None
    off_for_us: bool  # by prctl(); children inherit it
    in_use: int  # bytes, of the whole machine

    @property
    def rule(self) -> str | None:
        """The rule for pages of this size."""
        return self.enabled if self.of_this_size in (None, "inherit") else self.of_this_size


@dataclass(frozen=True)
class SamePageMerging:
    running: bool
    across_nodes: bool


@dataclass(frozen=True)
class Settings:
    huge_pages: TransparentHugePages
    autonuma: int | None  # 0 off, 1 on, 2 for memory tiers; None: the kernel has none
    demotion: bool
    zone_reclaim: int
    overcommit: int
    commit_limit: int
    committed: int
    max_map_count: int | None
    swap_total: int
    swap_free: int
    merging: SamePageMerging


def read(files: Files) -> Settings:
    meminfo = files.fields("/proc/meminfo")

    def of_meminfo(name: str) -> int:
        return kilobytes(meminfo.get(name)) or 0

    size = files.number(f"{THP}/hpage_pmd_size") or _HUGE_PAGE
    huge_pages = TransparentHugePages(
        size,
        files.chosen(f"{THP}/enabled"),
        files.chosen(f"{THP}/hugepages-{size >> 10}kB/enabled"),
        files.chosen(f"{THP}/defrag"),
        files.fields("/proc/self/status").get("THP_enabled") == "0",
        of_meminfo("AnonHugePages"),
    )
    return Settings(
        huge_pages=huge_pages,
        autonuma=files.number("/proc/sys/kernel/numa_balancing"),
        demotion=files.text("/sys/kernel/mm/numa/demotion_enabled") in ("1", "true"),
        zone_reclaim=files.number("/proc/sys/vm/zone_reclaim_mode") or 0,
        overcommit=files.number("/proc/sys/vm/overcommit_memory") or 0,
        commit_limit=of_meminfo("CommitLimit"),
        committed=of_meminfo("Committed_AS"),
        max_map_count=files.number("/proc/sys/vm/max_map_count"),
        swap_total=of_meminfo("SwapTotal"),
        swap_free=of_meminfo("SwapFree"),
        merging=SamePageMerging(files.number("/sys/kernel/mm/ksm/run") == 1, files.number("/sys/kernel/mm/ksm/merge_across_nodes") != 0),
    )
