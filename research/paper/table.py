"""The experiments of experiments.toml, and the choice among them."""

from dataclasses import dataclass, field
from pathlib import Path

from numalloc_tools.problem import Problem
from numalloc_tools.toml_file import content_of

TOOLS = ("bench", "lab", "figures")
VIEWS = ("ratio", "partner", "speedup", "value", "spread", "document")
PAPERS = {
    "000": "NUMAlloc: A Faster NUMA Memory Allocator, ISMM 2023",
    "002": "the study of memory allocators and placement for data analytics on NUMA systems",
    "003": "JArena: Partitioned Shared Memory for NUMA-awareness in Multi-threaded Scientific Applications",
    "004": "the draft of the NUMAlloc paper with machines A (2 x 20) and B (8 x 16)",
}
_TABLE = Path(__file__).with_name("experiments.toml")


@dataclass(frozen=True)
class Call:
    """One call of numalloc, whose results several experiments may look at."""

    name: str
    tool: str
    words: tuple[str, ...]
    own_allocators: bool = False  # --allocators does not apply
    own_rounds: bool = False


@dataclass(frozen=True)
class Experiment:
    id: str
    title: str
    runs: tuple[str, ...]
    view: str
    said: str  # what the paper says it found
    paper: dict[str, float]  # its figures
    one_node: str  # what a machine without nodes can show of it
    figure: str = ""
    base: str = ""
    over: str = ""
    columns: tuple[str, ...] = field(default=())

    @property
    def source(self) -> str:
        return PAPERS[self.id.partition("-")[0]]


def load() -> tuple[dict[str, Call], list[Experiment]]:
    content = content_of(_TABLE, "experiments", "the table of the papers' experiments")
    calls = {name: Call(name, **{**row, "words": tuple(row["words"])}) for name, row in content["run"].items()}
    experiments = [
        Experiment(**{**row, "runs": tuple(row["runs"]), "columns": tuple(row.get("columns", ()))}) for row in content["experiment"]
    ]
    return calls, experiments


def selected(experiments: list[Experiment], wanted: list[str]) -> list[Experiment]:
    """'all', a paper's number, an id, or the end of ids, such as figure-3."""
    found: list[Experiment] = []
    for word in wanted:
        some = [one for one in experiments if one.id == word]
        some = some or [one for one in experiments if word == "all" or one.id.startswith(f"{word}-")]
        some = some or [one for one in experiments if one.id.endswith(f"-{word}")]
        if not some:
            raise Problem(f"'{word}' is no experiment; accepted: all, {', '.join(PAPERS)}, {', '.join(one.id for one in experiments)}")
        found += [one for one in some if one not in found]
    return found
