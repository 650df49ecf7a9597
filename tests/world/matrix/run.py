"""Runs the chosen rows one after the other and keeps what was found, row by row."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from matrix import compare, events, install, settings, tree
from matrix.cell import Cell, Outcome
from matrix.table import Row

# Verdicts.
SAME, DIFFERS, CANNOT, NO_BASELINE = "same", "differs", "cannot", "no baseline"
NOT_INSTALLABLE, NOT_TRIED = "not installable", "not tried"
SKIPPED = 77  # the status of a command that says on stderr what this machine lacks


@dataclass
class Result:
    name: str
    verdict: str
    faults: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    version: str = ""
    memory: dict[str, list[int]] = field(default_factory=dict)  # peak and settled: glibc's and ours, KiB
    measures: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0
    commit: str = ""

    def passed(self) -> bool:
        return self.verdict in (SAME, CANNOT)

    def failed(self) -> bool:
        return self.verdict in (DIFFERS, NO_BASELINE)


class Runner:
    def __init__(self, library: Path, cache: Path, installs: bool, commit: str) -> None:
        # Other users, whom servers run as, must be able to reach the library and the folders.
        self._folder = Path(tempfile.mkdtemp(prefix="numalloc-world-"))
        self._folder.chmod(0o755)
        self._library = self._folder / "libnumalloc.so"
        shutil.copy(library, self._library)
        self._library.chmod(0o755)
        self._cache = cache
        self._installer = install.Installer(cache, installs)
        self._commit = commit
        self.watch = events.best()
        events.adopt_orphans()

    def close(self) -> None:
        tree.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def row(self, row: Row) -> Result:
        begun = time.monotonic()
        if row.root and os.geteuid() != 0:
            return Result(row.name, NOT_TRIED, ["needs root"], commit=self._commit)
        try:
            self._installer.bring(row)
        except install.NotInstallable as error:
            return Result(row.name, NOT_INSTALLABLE, [str(error)], commit=self._commit)
        result = Result(row.name, SAME, version=install.version(row, self._cache), commit=self._commit)
        try:
            self._compare(row, result)
        except settings.Refused as error:
            result.verdict, result.faults = NOT_TRIED, [str(error)]
        result.seconds = time.monotonic() - begun
        return result

    def _compare(self, row: Row, result: Result) -> None:
        base = [self._run(row, "glibc")]
        if SKIPPED in base[0].statuses.values():
            result.verdict, result.faults = NOT_TRIED, (base[0].errors.strip().splitlines() or ["no reason given"])[-1:]
            return
        if lack := compare.no_baseline(row, base[0]):
            base = [self._run(row, "glibc")]  # once more: a busy machine is no reason
            lack = compare.no_baseline(row, base[0])
        if lack:
            result.verdict, result.faults = NO_BASELINE, lack
            return
        ours = self._run(row, "numalloc")
        faults = compare.faults(row, base, ours)
        if faults:
            base.append(self._run(row, "glibc-again"))
            again = self._run(row, "numalloc-again")
            faults = self._weighed(row, result, base, ours, again)
        result.memory = _memory(base[0], ours)
        result.measures = {
            name: [value, compare.measured(row, ours).get(name, -1)] for name, value in compare.measured(row, base[0]).items()
        }
        result.remarks += [row.note] if row.note else []
        if base[0].lost or ours.lost:
            result.remarks.append("the kernel told not of every process")
        if row.cannot:
            result.verdict = CANNOT if faults else DIFFERS
            result.remarks.append(row.cannot)
            result.faults = faults or ["is said not to work, and works"]
        elif faults:
            result.verdict, result.faults = DIFFERS, faults

    def _weighed(self, row: Row, result: Result, base: list[Outcome], ours: Outcome, again: Outcome) -> list[str]:
        """Faults that glibc has too in one of two runs do not count; a crash counts even where it was seen once."""
        if lack := compare.no_baseline(row, base[1]):
            result.remarks.append(f"glibc's second run: {lack[0]}")
            base.pop()
        first, second = compare.faults(row, base, ours), compare.faults(row, base, again)
        if first and second:
            return second if any(map(compare.is_crash, second)) else first
        once = first or second
        if any(compare.is_crash(fault) for fault in once):
            return [f"{fault} (in one of two runs)" for fault in once]
        result.remarks += [f"in one of two runs: {fault}" for fault in once]
        return []

    def _run(self, row: Row, name: str) -> Outcome:
        library = "" if name.startswith("glibc") else str(self._library)
        return Cell(row, library, self._folder / name, self._cache, self.watch).run()


def _memory(base: Outcome, ours: Outcome) -> dict[str, list[int]]:
    found = {}
    if min(base.samples, ours.samples) >= compare.FEW_SAMPLES:
        found["peak"] = [base.peak, ours.peak]
    if base.settled and ours.settled:
        found["settled"] = [base.settled, ours.settled]
    return found


def commit_of(folder: Path) -> str:
    """The commit that the working tree is at, with a plus where it has been changed since."""
    call = ["git", "-C", str(folder)]
    done = subprocess.run([*call, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run([*call, "status", "--porcelain", "--", "src", "include"], capture_output=True, text=True).stdout
    return done.stdout.strip() + ("+" if changed.strip() else "") if done.returncode == 0 else "unknown"


def run_all(runner: Runner, rows: list[Row], say: Callable[[Result], None], keep: Path) -> list[Result]:
    """Kept after every row: a run that is broken off has shown what it has shown."""
    found = []
    for row in rows:
        result = runner.row(row)
        found.append(result)
        save(keep, load(keep) | {row.name: result})  # another run may have added its own
        say(result)
    return found


def load(path: Path) -> dict[str, Result]:
    if not path.is_file():
        return {}
    return {name: Result(**entry) for name, entry in json.loads(path.read_text()).items()}


def save(path: Path, results: dict[str, Result]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps({name: asdict(result) for name, result in results.items()}, indent=1))
    os.replace(new, path)
