"""All programs that can be run: the project's own, from their table, and Debian's."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.launch.launcher import Ended, run
from numalloc_tools.problem import Problem
from numalloc_tools.programs.in_lab import InLab

OWN, REAL, BROUGHT = "own", "real", "brought"
LIMIT = 120.0  # seconds: limit of a run at scale 1, many times its duration
PAPER_LIMIT = 3600.0  # the same with --paper


@dataclass(frozen=True)
class Work:
    """The parameters of one run."""

    threads: int
    scale: float
    seed: int = 1
    limit: float = LIMIT
    paper: bool = False  # with the sizes of --paper
    sample: bool = False  # the run's time does not count, and more figures are taken


@dataclass(frozen=True)
class Program:
    name: str
    family: str
    description: str
    source: str  # the paper or author that described it, or the package
    threads: tuple[int, ...]  # numbers worth measuring
    standard_threads: int
    kind: str
    run: Callable[[Allocator, Work], Ended]  # the figures of a successful run include `seconds`
    missing: str = ""  # the reason why it cannot run, and the remedy
    quick: bool = True  # short enough for --quick
    command: tuple[str, ...] = ()  # for the project's own programs: the binary and its arguments
    paper: bool = False  # it has paper sizes
    packages: tuple[str, ...] = ()  # Debian packages that a user's program needs
    lab: InLab | None = None  # how a Debian program runs with --lab


@dataclass(frozen=True)
class Case:
    """A row of the results: a program with a number of threads."""

    program: Program
    threads: int

    @property
    def name(self) -> str:
        return f"{self.program.name}/{self.threads}"


def own(library: Path) -> list[Program]:
    """The programs of bench/programs.json above the library; their binaries are in bench/ in the library's folder."""
    table = sources(library) / "programs.json"
    binaries = library.parent / "bench"
    return [_own(row, binaries / row.get("binary", row["name"])) for row in json.loads(table.read_text())["programs"]]


def sources(library: Path) -> Path:
    """bench/ of the library's working tree."""
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
    """The figures of the last line, which is JSON. A program that does not report correct data has failed."""
    if ended.status != "ok":
        return ended
    try:
        said = json.loads(ended.stdout.splitlines()[-1])
        ended.figures |= {name: float(value) for name, value in said.items() if isinstance(value, (int, float))}
        right = said["check"] == "ok" and ended.figures["seconds"] >= 0
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        ended.status, ended.reason = "wrong", "its last line is not a valid result"
        return ended
    if not right:
        ended.status, ended.reason = "wrong", f"its data were damaged: check is {said['check']}"
    return ended


def selected(programs: list[Program], only: list[str]) -> list[Program]:
    """Selects programs by name, family or kind."""
    words = {word for program in programs for word in (program.name, program.family, program.kind)}
    for word in only:
        if word not in words:
            raise Problem(f"--only: '{word}' is unknown; accepted: {', '.join(sorted(words))}")
    return [one for one in programs if not only or {one.name, one.family, one.kind} & set(only)]


def cases(programs: list[Program], threads: list[int], all_threads: bool) -> list[Case]:
    """Without a number each program uses its standard number; a program made for one number keeps it."""
    result = []
    for program in programs:
        numbers = [program.standard_threads]
        if all_threads:
            numbers = list(program.threads) or numbers
        elif threads and len(program.threads) > 1:
            numbers = threads
        result += [Case(program, number) for number in numbers]
    return result
