"""The matrix of the proof: the runs, the kernel's switches for each, and the conditions for passing."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.guest import batch, programs
from numalloc_tools.guest.machine import Machine

# Block size and blocks per thread: the paper's 64 MiB at 1 MiB, and enough pages to count at small sizes.
BLOCKS = {"1M": (1 << 20, 64), "64K": (1 << 16, 64), "4K": (4096, 256), "256": (256, 4096), "64": (64, 16384)}
FREED_BY = ("own", "left", "other")
THREADS_ARE = ("free", "pinned")
GENERATION_SIZES = {"64-4K": (64, 4096), "4K-64K": (4096, 65536), "64K-1M": (65536, 1 << 20)}
_GENERATION_BYTES = 8 << 20
GENERATIONS = 6
ROUNDS = 5
# A node may have this much more than its share: with all memory on one node it would be local too, but useless.
UNEVEN = 1.25


@dataclass(frozen=True)
class Scenario:
    program: str
    sizes: str
    threads_are: str
    freed_by: str  # in generations: always a thread of another node
    rounds: int  # or generations
    blocks: int = 0  # per thread in listing 1; 0: the usual number for the size

    @property
    def name(self) -> str:
        return f"{self.program}-{self.sizes}-{self.freed_by}-{self.threads_are}"

    @property
    def title(self) -> str:
        return f"{self.program} {self.sizes} {self.freed_by} {self.threads_are}"

    def command(self, program: str, threads: int) -> list[str]:
        if self.program == "listing1":
            size, blocks = BLOCKS[self.sizes]
            words = [threads, size, self.blocks or blocks, self.rounds, self.freed_by, self.threads_are]
        else:
            smallest, largest = GENERATION_SIZES[self.sizes]
            words = [threads, self.rounds, _GENERATION_BYTES, smallest, largest, self.threads_are]
        return [program, *map(str, words)]


@dataclass(frozen=True)
class Switches:
    thp: str
    autonuma: bool

    @property
    def name(self) -> str:
        return f"thp-{self.thp}-autonuma-{'on' if self.autonuma else 'off'}"

    def __str__(self) -> str:
        return f"huge pages {self.thp}, AutoNUMA {'on' if self.autonuma else 'off'}"


@dataclass(frozen=True)
class Cell:
    """One program run under one allocator."""

    scenario: Scenario
    switches: Switches
    allocator: str
    pages: int = 0
    remote: int = 0
    write_seconds: float = 0.0
    spread: tuple[int, ...] = ()
    threads_on: tuple[int, ...] = ()
    failure: str = ""  # the reason why there are no figures, or why they do not count

    @property
    def remote_percent(self) -> float:
        return 100 * self.remote / self.pages if self.pages else 0.0

    def fullest_share(self) -> float:
        return max(self.spread) / sum(self.spread) if sum(self.spread) else 0.0

    def passed(self, nodes: int) -> bool:
        return not self.failure and self.remote == 0 and self.fullest_share() <= UNEVEN / nodes

    def as_dict(self) -> dict:
        return {**asdict(self), "remote_percent": self.remote_percent, "fullest_share": self.fullest_share()}


def listing1(sizes: list[str], freed_by: list[str], threads_are: list[str], rounds: int, most_bytes: int = 0) -> list[Scenario]:
    """`most_bytes`: limit per thread, if the usual amount is too much."""

    def blocks(size: str) -> int:
        return min(BLOCKS[size][1], most_bytes // BLOCKS[size][0]) if most_bytes else 0

    return [
        Scenario("listing1", size, threads, freed, rounds, blocks(size)) for size in sizes for freed in freed_by for threads in threads_are
    ]


def generations(threads_are: list[str], count: int = GENERATIONS) -> list[Scenario]:
    return [Scenario("generations", size, threads, "other", count) for size in GENERATION_SIZES for threads in threads_are]


def cell(scenario: Scenario, switches: Switches, allocator: str, result: batch.Result | None) -> Cell:
    if result is None:
        return Cell(scenario, switches, allocator, failure="did not run")
    if result.oom_kills:
        return Cell(scenario, switches, allocator, failure="ran out of memory")
    if result.status in (124, 137):
        return Cell(scenario, switches, allocator, failure="ran too long")
    if result.status:
        last = (result.stderr.strip().splitlines() or ["nothing on standard error"])[-1]
        return Cell(scenario, switches, allocator, failure=f"exit status {result.status}: {last}")
    figures = json.loads(result.stdout.splitlines()[-1])
    failure = ""
    if figures["damaged"]:
        failure = f"{figures['damaged']} blocks were overwritten"
    elif figures["unknown"]:
        failure = f"{figures['unknown']} pages are on no node"
    return Cell(
        scenario,
        switches,
        allocator,
        figures["pages"],
        figures["remote"],
        figures.get("write_seconds", 0.0),
        tuple(figures["spread"]),
        tuple(figures["threads_on"]),
        failure,
    )


def measure(
    machine: Machine,
    wanted: list[tuple[Scenario, Allocator]],
    switches: Switches,
    note: Callable[[Cell], None],
    timeout: int = 900,
    kernel_image: Path | None = None,
    boot_seconds: int = batch.BOOT_SECONDS,
) -> list[str]:
    """Makes all measurements in one machine, and the rest in another one if that stops early. Returns the messages of the
    kernels."""
    findings = []
    left = {f"{allocator.name}-{scenario.name}": (scenario, allocator) for scenario, allocator in wanted}
    while left:

        def end(name: str, result: batch.Result) -> None:
            scenario, allocator = left.pop(name)
            note(cell(scenario, switches, allocator.name, result))

        jobs = [
            batch.Job(
                name,
                scenario.command(str(programs.built(scenario.program, architecture=machine.architecture)), machine.cpus),
                allocator.preloading(),
                timeout=timeout,
            )
            for name, (scenario, allocator) in left.items()
        ]
        libraries = {str(library) for _, allocator in left.values() for library in allocator.libraries}
        report = batch.run(
            machine,
            jobs,
            sorted(libraries),
            thp=switches.thp,
            autonuma=switches.autonuma,
            on_end=end,
            kernel_image=kernel_image,
            boot_seconds=boot_seconds,
        )
        findings += report.findings
        if left:  # the machine stopped during the first of these
            scenario, allocator = left.pop(next(iter(left)))
            note(cell(scenario, switches, allocator.name, None))
    return findings
