"""The figures of one process at one moment. The readers fill it, and all views show the same figures."""

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Memory:
    """Bytes, as the kernel counts them."""

    resident: int
    peak: int
    anonymous: int
    files: int
    shared: int
    hugetlb: int  # pages of hugetlbfs, which none of the above includes
    swapped: int
    huge: int | None  # anonymous and shared memory on transparent huge pages; None: the kernel does not tell

    @property
    def huge_share(self) -> float | None:
        """The share of huge pages in the memory that could be on them."""
        own = self.anonymous + self.shared + self.hugetlb
        return (self.huge + self.hugetlb) / own if own and self.huge is not None else None


@dataclass(frozen=True)
class NodeMemory:
    """Resident bytes of a process on one node."""

    own: int = 0  # anonymous and shared memory
    files: int = 0  # mapped files: programs, libraries, data
    off_policy: int = 0  # of both, in mappings whose policy names only other nodes


@dataclass(frozen=True)
class Thread:
    tid: int
    name: str
    cpu: int  # on which the thread ran last
    node: int
    cpu_seconds: float
    migrations: int | None  # from CPU to CPU; None: the kernel does not tell


INTERLEAVED = -2


@dataclass(frozen=True)
class NodeRecord:
    node: int  # the kernel's number, or INTERLEAVED
    values: dict[str, int]


@dataclass(frozen=True)
class ClassRecord:
    node: int
    size: int  # bytes of an object
    values: dict[str, int]


@dataclass(frozen=True)
class Page:
    """The figures of the library's page of statistics."""

    updated_at: float  # seconds of the monotonic clock
    process: dict[str, int]
    nodes: tuple[NodeRecord, ...]
    classes: tuple[ClassRecord, ...]


@dataclass(frozen=True)
class Moment:
    pid: int
    name: str
    started: int  # ticks since the machine's start: with the PID, it identifies a process permanently
    age: float  # seconds since then
    at: float  # seconds of the monotonic clock
    under_numalloc: bool
    memory: Memory
    nodes: dict[int, NodeMemory] | None  # None: the kernel does not tell where memory is
    policies: dict[str, int]  # memory policy of mappings -> resident bytes
    threads: tuple[Thread, ...]
    cpu_seconds: float  # of all threads, including ended ones
    minor_faults: int
    major_faults: int
    page: Page | None
    other_malloc: str = ""  # another allocator whose library is in the process

    @property
    def malloc(self) -> str:
        """The allocator by its library; empty: the C library's, one that is linked statically, or unknown."""
        return "numalloc" if self.under_numalloc else self.other_malloc

    @cached_property
    def threads_on(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for thread in self.threads:
            found[thread.node] = found.get(thread.node, 0) + 1
        return dict(sorted(found.items()))

    @property
    def migrations(self) -> int | None:
        counts = [thread.migrations for thread in self.threads if thread.migrations is not None]
        return sum(counts) if len(counts) == len(self.threads) else None

    @property
    def shown_nodes(self) -> list[int]:
        """Every node on which the process has memory or a thread."""
        return sorted({node for node, held in (self.nodes or {}).items() if held.own or held.files} | set(self.threads_on))
