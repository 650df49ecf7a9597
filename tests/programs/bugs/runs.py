"""Runs of the program with one bug each, and what became of them."""

import os
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

SIZES = ("small", "medium", "big")
HEATS = ("cold", "warm", "other")
# With the letter of each in the tables.
VERDICTS = {"found": "F", "crashed": "K", "survived": "·", "leaked": "L", "corrupted": "C", "absent": "–"}
CONTROL = "no_bug"
# A broken list that is walked for ever ends by the program's own alarm.
SIGNALS = {signal.SIGSEGV: "SIGSEGV", signal.SIGBUS: "SIGBUS", signal.SIGFPE: "SIGFPE", signal.SIGALRM: "it hung"}
ENDS = (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)


@dataclass(frozen=True)
class Run:
    bug: str
    size: str
    heat: str
    verdict: str
    message: str = ""  # less its numbers, which differ from run to run

    def line(self) -> str:
        return f"{self.bug} {self.heat}: {self.verdict}" + (f": {self.message}" if self.message else "")


def environment(library: Path | None) -> dict[str, str]:
    """The user's, less what would change an allocator."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMALLOC_") and name != "GLIBC_TUNABLES"}
    return kept | {"LD_PRELOAD": str(library or "")}


def without_numbers(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return re.sub(r"\b\d{3,}\b", "N", re.sub(r"0x[0-9a-fA-F]+", "ADDRESS", lines[0].strip())) if lines else ""


def verdict(status: int, output: str, errors: str) -> tuple[str, str]:
    if status == 0:
        said, _, why = output.strip().partition(": ")
        if said in VERDICTS:
            return said, why
    elif -status in (signal.SIGSEGV, signal.SIGBUS) and without_numbers(errors):
        return "found", without_numbers(errors)
    elif -status in SIGNALS:
        return "crashed", SIGNALS[signal.Signals(-status)]
    elif -status in ENDS:
        return "found", without_numbers(errors)
    raise SystemExit(f"a run ended in no way that is known: status {status}, stdout {output!r}, stderr {errors!r}")


def run_one(program: Path, env: dict[str, str], bug: str, size: str, heat: str) -> Run:
    done = subprocess.run([program, bug, size, heat], env=env, capture_output=True, text=True, errors="replace", timeout=300)
    return Run(bug, size, heat, *verdict(done.returncode, done.stdout, done.stderr))


def names(program: Path) -> list[str]:
    listed = subprocess.run([program], capture_output=True, text=True, check=True, timeout=300).stdout.split()
    return [name for name in listed if name != CONTROL]


def run_all(program: Path, library: Path | None, sizes: tuple[str, ...] = SIZES, jobs: int = os.cpu_count() or 1) -> list[Run]:
    require(program, library)
    env = environment(library)
    for size in sizes:
        for heat in HEATS:
            if (run := run_one(program, env, CONTROL, size, heat)).verdict != "survived":
                raise SystemExit(f"{library or 'glibc'}: without a bug: {size} {run.line()}")
    wanted = [(bug, size, heat) for size in sizes for bug in names(program) for heat in HEATS]
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda one: run_one(program, env, *one), wanted))


def require(program: Path, library: Path | None) -> None:
    """Ends with a line where malloc is not the library's: the runs would prove nothing."""
    done = subprocess.run([program, "--malloc"], env=environment(library), capture_output=True, text=True, check=True, timeout=300)
    found = Path(done.stdout.strip())
    if library and found.resolve() != library.resolve():
        raise SystemExit(f"malloc is {found}, not {library}: accepted is a library that can be preloaded")


def letters(runs: list[Run], bug: str, size: str) -> str:
    """Of a bug at a size: a letter for cold, warm and other."""
    found = {run.heat: VERDICTS[run.verdict] for run in runs if (run.bug, run.size) == (bug, size)}
    return "".join(found[heat] for heat in HEATS)


def row_of_sizes(runs: list[Run], bug: str) -> list[str]:
    """A row of numalloc's table in docs/security.md."""
    return [f"`{bug}`", *(letters(runs, bug, size) for size in SIZES)]
