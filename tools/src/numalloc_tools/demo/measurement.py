"""Figures of one run, and what many runs say together."""

from dataclasses import dataclass
from statistics import mean, median

from numalloc_tools.machine import memory


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    unit: str
    group: str
    more_is_better: bool = True


@dataclass(frozen=True)
class Run:
    allocator: str
    round: int
    figures: list[Figure]
    placed_by: str  # how the kernel was asked for the nodes

    def value(self, name: str) -> float:
        return next((figure.value for figure in self.figures if figure.name == name), 0.0)

    def as_dict(self) -> dict:
        figures = {figure.name: {"value": figure.value, "unit": figure.unit} for figure in self.figures}
        return {"allocator": self.allocator, "round": self.round, "placed_by": self.placed_by, "figures": figures}


@dataclass(frozen=True)
class Summary:
    """One figure of one allocator over the rounds."""

    median: float
    mean: float
    least: float
    most: float
    ratio: float | None  # to the baseline: the median over rounds, each round's pair compared

    @property
    def spread(self) -> float:
        """Half the range, in percent of the median."""
        return 50 * (self.most - self.least) / self.median if self.median else 0.0


THROUGHPUT, CPU, MEMORY, NODES = "throughput", "CPU time", "memory", "memory by node"
WORKING, PEAK, FULL, SETTLED = "all of it", "peak", "with its data", "settled"


def after_work(pid: int) -> tuple[list[Figure], str]:
    """The figures of a process that holds its data: its CPU time (which busy neighbours hardly touch),
    the peak, what is resident, and where it lies."""
    placed = memory.placement(pid)
    figures = [
        Figure(WORKING, memory.cpu_seconds(pid), "s", CPU, False),
        Figure(PEAK, memory.status(pid, "VmHWM"), "B", MEMORY, False),
        Figure(FULL, memory.status(pid, "VmRSS"), "B", MEMORY, False),
    ]
    figures += [Figure(f"node {node}", held, "B", NODES, False) for node, held in placed.nodes.items()]
    return figures, placed.source


def settled_memory(pid: int) -> Figure:
    """What is still resident once the program has let go of its data and some seconds have passed."""
    return Figure(SETTLED, memory.status(pid, "VmRSS"), "B", MEMORY, False)


def summary(runs: list[Run], allocator: str, baseline: str, name: str) -> Summary:
    """A node on which a run has nothing counts as 0."""
    ours = {run.round: run.value(name) for run in runs if run.allocator == allocator}
    theirs = {run.round: run.value(name) for run in runs if run.allocator == baseline}
    ratios = [value / theirs[number] for number, value in ours.items() if theirs.get(number)]
    values = list(ours.values())
    ratio = median(ratios) if ratios and allocator != baseline else None
    return Summary(median(values), mean(values), min(values), max(values), ratio)
