"""The results of a run as data: written as JSON, read back, and summarised."""

import json
import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from numalloc_tools.json_file import object_in
from numalloc_tools.machine.words import printable
from numalloc_tools.problem import Problem

FORMAT, VERSION = "numalloc-bench", 1
OK, NOT_RUN = "ok", "did not run"
LAB = "lab:"  # precedes the name of a program that ran in a virtual machine, where time means nothing
TIME, CPU, MEMORY = "seconds", "cpu_seconds", "peak_bytes"
REMOTE, FULLEST = "remote_percent", "fullest_percent"  # percentages of the pages, from the lab


@dataclass(frozen=True)
class Run:
    program: str
    threads: int
    allocator: str
    round: int  # 0, or less in merged files: a warm-up, whose time does not count
    status: str
    reason: str
    figures: dict[str, float]

    @property
    def case(self) -> str:
        return f"{self.program}/{self.threads}"


@dataclass
class Results:
    machine: dict
    settings: dict
    allocators: list[dict]
    programs: list[dict]
    runs: list[Run] = field(default_factory=list)
    complete: bool = False
    seconds: float = 0.0

    def write(self, path: Path) -> None:
        """Writes all or nothing: an interrupted run keeps the last complete file."""
        content = {
            "format": FORMAT,
            "version": VERSION,
            "complete": self.complete,
            "seconds": round(self.seconds, 1),
            "machine": self.machine,
            "settings": self.settings,
            "allocators": self.allocators,
            "programs": self.programs,
            "runs": [],
        }
        # One line per run: the file of a full run is small enough to keep, and its diffs are readable.
        head, tail = json.dumps(content, indent=1).rsplit("[]", 1)
        runs = ",\n".join(json.dumps(vars(run) | {"figures": _rounded(run.figures)}) for run in self.runs)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_text(f"{head}[\n{runs}\n]{tail}\n")
        os.replace(part, path)

    @property
    def names(self) -> list[str]:
        return [one["name"] for one in self.allocators]

    @property
    def cases(self) -> list[str]:
        return list(dict.fromkeys(run.case for run in self.runs))

    def standard_cases(self, figure: str) -> list[str]:
        """Each program once: with its standard number of threads if that was run, otherwise with every number that was."""
        found: dict[str, list[Run]] = {}
        known = set(self.cases_with(figure))
        for run in self.runs:
            if run.case in known:
                found.setdefault(run.program, []).append(run)
        standard = {one["name"]: one.get("standard_threads") for one in self.programs}
        cases: list[str] = []
        for program, runs in found.items():
            own = [run.case for run in runs if run.threads == standard.get(program)]
            cases += dict.fromkeys(own or [run.case for run in runs])
        return cases

    def cases_with(self, figure: str) -> list[str]:
        """The cases that have this figure, or would if they had not failed."""
        return list(dict.fromkeys(run.case for run in self.runs if run.case.startswith(LAB) == (figure in (REMOTE, FULLEST))))


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    """Whole numbers unchanged, others rounded to a millionth."""
    return {name: int(value) if value == int(value) else round(value, 6) for name, value in figures.items()}


_WRITTEN = "accepted: files that numalloc bench has written"
_NUMBER = (int, float)
# The types of the members, and the members about the machine and the run that a report needs.
_TYPES: dict[str, dict[str, type | tuple[type, ...]]] = {
    "": {"machine": dict, "settings": dict, "allocators": list, "programs": list, "runs": list, "complete": bool, "seconds": _NUMBER},
    "machine": {
        "processor": str,
        "cpus": int,
        "memory_bytes": _NUMBER,
        "nodes": int,
        "system": str,
        "kernel": str,
        "libc": str,
        "huge_pages": str,
        "load_at_start": _NUMBER,
    },
    "settings": {"baseline": str, "started": str, "scale": _NUMBER, "rounds": int},
    "allocators": {"name": str, "version": str, "libraries": list},
    "programs": {"name": str, "standard_threads": int, "family": str, "kind": str, "description": str, "source": str},
    "runs": {"program": str, "threads": int, "allocator": str, "round": int, "status": str, "reason": str, "figures": dict},
}
_NEEDED = {"": tuple(_TYPES[""]), "allocators": ("name",), "programs": ("name",), "runs": tuple(_TYPES["runs"])}


def _is(value: object, accepted: type | tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return accepted is bool
    return isinstance(value, accepted) and not (isinstance(value, float) and not math.isfinite(value))


def _strange(content: dict) -> str:
    """The first part that numalloc bench would not write, or nothing."""
    whole: list[tuple[str, object]] = [("", content)]
    for part, types in _TYPES.items():
        rows = (
            whole if part == "" else [(part, content[part])] if part in ("machine", "settings") else [(part, row) for row in content[part]]
        )
        for where, row in rows:
            before = f"{where}: " if where else ""
            if not isinstance(row, dict):
                return f"{before}a row is not an object"
            for name in _NEEDED.get(part, ()):
                if name not in row:
                    return f"{before}there is no '{name}'"
            for name, accepted in types.items():
                if name in row and not _is(row[name], accepted):
                    return f"{before}{name} is {json.dumps(row[name])[:40]}"
            if part == "runs" and (more := sorted(set(row) - set(types))):
                return f"{before}'{more[0]}' is unknown"
    figures = (figure for run in content["runs"] for figure in run["figures"].items())
    return next((f"runs: the figure {name} is {json.dumps(value)[:40]}" for name, value in figures if not _is(value, _NUMBER)), "")


def read(path: Path) -> Results:
    content = object_in(path, f"{path}: ", _WRITTEN)
    if content.get("format") != FORMAT or content.get("version") != VERSION:
        raise Problem(f"{path} is not of format {FORMAT} {VERSION}; {_WRITTEN}")
    if strange := _strange(content):
        raise Problem(f"{path}: {printable(strange)}; {_WRITTEN}")
    runs = [Run(**run | {"figures": {name: float(value) for name, value in run["figures"].items()}}) for run in content["runs"]]
    return Results(
        content["machine"],
        content["settings"],
        content["allocators"],
        content["programs"],
        runs,
        content["complete"],
        content["seconds"],
    )


def check_described(results: Results, path: Path) -> None:
    """Checks the members that tell where and how the figures were measured."""
    for part, said in (("machine", results.machine), ("settings", results.settings)):
        if missing := next((name for name in _TYPES[part] if name not in said), ""):
            raise Problem(f"{path}: {part}: there is no '{missing}'; {_WRITTEN}")
    if strange := next((one["name"] for one in results.allocators if "version" not in one or "libraries" not in one), ""):
        raise Problem(f"{path}: allocators: {printable(strange)} has no version and libraries; {_WRITTEN}")


def merged(many: list[Results]) -> Results:
    """Merges several files; the rounds of a program in a later file are counted on from the earlier one's."""
    first, *rest = many
    _check_scales(many)
    result = Results(
        first.machine,
        first.settings,
        list(first.allocators),
        list(first.programs),
        list(first.runs),
        all(one.complete for one in many),
        sum(one.seconds for one in many),
    )
    for index, one in enumerate(rest, 1):
        start = max((run.round for run in result.runs), default=0)
        for mine, theirs in ((result.allocators, one.allocators), (result.programs, one.programs)):
            known = {row["name"] for row in mine}
            mine += [row for row in theirs if row["name"] not in known]
        result.runs += [replace(run, round=run.round + start if run.round > 0 else -index) for run in one.runs]
    return result


def _check_scales(many: list[Results]) -> None:
    """Figures of different amounts of work cannot be merged."""
    scales: dict[str, str] = {}
    for one in many:
        scale = f"{one.settings.get('scale', 1.0):g}{' of --paper' if one.settings.get('paper') else ''}"
        for case in one.cases:
            if scales.setdefault(case, scale) != scale:
                raise Problem(
                    f"{case} was run at scale {scales[case]} and at {scale}; accepted: files of one --scale, or of different programs"
                )


@dataclass(frozen=True)
class Cell:
    """One figure of one program under one allocator, over the rounds."""

    status: str
    reason: str = ""
    value: float = 0.0  # median
    spread: float = 0.0  # half the range over the median
    ratio: float | None = None  # to the baseline: median of the rounds' own ratios
    rounds: int = 0

    @property
    def ok(self) -> bool:
        return self.status == OK


def _counted(by_round: dict[int, float], figure: str) -> dict[int, float]:
    """Memory of the warm-up counts too; its time only if there is no other."""
    timed = {number: value for number, value in by_round.items() if number > 0}
    return timed if timed and "bytes" not in figure else by_round


class Summary:
    """Medians over rounds, ratios to the baseline, geometric means over the programs that all allocators completed."""

    def __init__(self, results: Results, baseline: str):
        self.results, self.baseline = results, baseline
        self._runs: dict[tuple[str, str], list[Run]] = {}
        for run in results.runs:
            self._runs.setdefault((run.case, run.allocator), []).append(run)

    def values(self, case: str, allocator: str, figure: str) -> dict[int, float]:
        """By round, including warm-ups."""
        runs = self._runs.get((case, allocator), [])
        return {run.round: run.figures[figure] for run in runs if run.status == OK and figure in run.figures}

    def cell(self, case: str, allocator: str, figure: str = TIME) -> Cell:
        runs = self._runs.get((case, allocator), [])
        failed = [run for run in runs if run.status != OK]
        if failed:
            return Cell(failed[-1].status, failed[-1].reason, rounds=len(runs))
        values = self.values(case, allocator, figure)
        if not values:
            return Cell("no figure" if runs else NOT_RUN)
        counted = list(_counted(values, figure).values())
        middle = median(counted)
        spread = (max(counted) - min(counted)) / 2 / middle if middle else 0.0
        # Only of the same round: in merged files, other rounds may be of another day.
        theirs = self.values(case, self.baseline, figure)
        ratios = {number: value / theirs[number] for number, value in values.items() if theirs.get(number)}
        ratio = median(_counted(ratios, figure).values()) if ratios else None
        return Cell(OK, "", middle, spread, ratio, len(counted))

    def allocators_with(self, figure: str, among: list[str]) -> list[str]:
        """The cases that were tried, including those that failed."""
        cases = self.results.cases_with(figure)
        return [name for name in among if any((case, name) in self._runs for case in cases)]

    def compared_throughout(self, figure: str, among: list[str], cases: list[str]) -> list[str]:
        """The allocators with a result that were tried in at least half of the cases. Others ran in a few, and do not count in `all`."""
        return [
            name
            for name in among
            if any(self.cell(case, name, figure).ok for case in cases)
            and 2 * sum((case, name) in self._runs for case in cases) >= len(cases)
        ]

    def completed_by_all(self, figure: str = TIME, among: list[str] | None = None, of: list[str] | None = None) -> list[str]:
        """The cases (among `of`) for which all these allocators have a ratio."""
        cases = self.results.cases_with(figure) if of is None else of
        names = self.compared_throughout(figure, among or self.results.names, cases)
        cells = {case: [self.cell(case, name, figure) for name in names] for case in cases}
        return [case for case, row in cells.items() if row and all(cell.ok and cell.ratio for cell in row)]

    def geometric_mean(self, allocator: str, cases: list[str], figure: str = TIME) -> float | None:
        ratios = [ratio for case in cases if (ratio := self.cell(case, allocator, figure).ratio)]
        if not ratios or len(ratios) < len(cases):
            return None
        return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
