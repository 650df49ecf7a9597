"""Everything that can be run: the project's own programs, by their table, and Debian's."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.launch.launcher import Ended, run
from numalloc_tools.problem import Problem
from numalloc_tools.programs.in_lab import InLab

OWN, REAL, BROUGHT = "own", "real", "brought"
LIMIT = 120.0  # seconds for one run at scale 1, many times what it takes
PAPER_LIMIT = 3600.0  # the same for one with --paper


@dataclass(frozen=True)
class Work:
    """One run's worth."""

    threads: int
    scale: float
    seed: int = 1
    limit: float = LIMIT
    paper: bool = False  # of the sizes of the program's source
    sample: bool = False  # the run's time does not count, and more is looked at


@dataclass(frozen=True)
class Program:
    name: str
    family: str
    description: str
    source: str  # who described it first, or the package
    threads: tuple[int, ...]  # worth measuring
    standard_threads: int
    kind: str
    run: Callable[[Allocator, Work], Ended]  # `seconds` is among the figures of a run that went well
    missing: str = ""  # why it cannot run, and what to do about it
    quick: bool = True  # short enough for --quick
    command: tuple[str, ...] = ()  # of the project's own: the binary and the words that belong to it
    paper: bool = False  # it knows --paper
    packages: tuple[str, ...] = ()  # Debian's, of what was brought
    lab: InLab | None = None  # how one of Debian's runs with --lab


@dataclass(frozen=True)
class Case:
    """A row of the results: a program with a number of threads."""

    program: Program
    threads: int

    @property
    def name(self) -> str:
        return f"{self.program.name}/{self.threads}"


def own(library: Path) -> list[Program]:
    """The programs of bench/programs.json above the library; the binaries lie in bench/ beside it."""
    table = sources(library) / "programs.json"
    binaries = library.parent / "bench"
    return [_own(row, binaries / row.get("binary", row["name"])) for row in json.loads(table.read_text())["programs"]]


def sources(library: Path) -> Path:
    """bench/ of the working tree that the library is in."""
    for folder in library.parents:
        if (folder / "bench/programs.json").is_file():
            return folder / "bench"
    raise Problem(f"bench/programs.json is in no folder above {library}; name the library of a working tree with --library")


def _own(row: dict, binary: Path) -> Program:
    command = (str(binary), *row.get("arguments", []))

    def start(allocator: Allocator, work: Work) -> Ended:
        words = ["--threads", work.threads, "--scale", f"{work.scale:g}", "--seed", work.seed]
        words += ["--paper"] if work.paper else []
        return judged(run([*command, *map(str, words)], allocator, work.limit, work.sample))

    missing = "" if binary.is_file() else f"{binary} is not built: cmake --build --preset release --target bench"
    return Program(
        row["name"],
        row["family"],
        row["description"],
        row["source"],
        tuple(row["threads"]),
        row["standard_threads"],
        OWN,
        start,
        missing,
        row.get("quick", True),
        command,
        row.get("paper", False),
    )


def judged(ended: Ended) -> Ended:
    """The figures of the last line, which is JSON; a program that does not say that its data were right was wrong."""
    if ended.status != "ok":
        return ended
    try:
        said = json.loads(ended.stdout.splitlines()[-1])
        ended.figures |= {name: float(value) for name, value in said.items() if isinstance(value, (int, float))}
        right = said["check"] == "ok" and ended.figures["seconds"] >= 0
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        ended.status, ended.reason = "wrong", "its last line is not the result that it should be"
        return ended
    if not right:
        ended.status, ended.reason = "wrong", f"its data were damaged: check is {said['check']}"
    return ended


def selected(programs: list[Program], only: list[str]) -> list[Program]:
    """By name, family or kind."""
    words = {word for program in programs for word in (program.name, program.family, program.kind)}
    for word in only:
        if word not in words:
            raise Problem(f"--only: '{word}' is unknown; accepted: {', '.join(sorted(words))}")
    return [one for one in programs if not only or {one.name, one.family, one.kind} & set(only)]


def cases(programs: list[Program], threads: list[int], all_threads: bool) -> list[Case]:
    """Without a number each program runs with its standard one; one that is made for a number keeps it."""
    result = []
    for program in programs:
        numbers = [program.standard_threads]
        if all_threads:
            numbers = list(program.threads) or numbers
        elif threads and len(program.threads) > 1:
            numbers = threads
        result += [Case(program, number) for number in numbers]
    return result
