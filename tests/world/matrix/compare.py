"""Whether a run under the library was as one under glibc's malloc, and in what not."""

import re
import shutil
import subprocess
from collections import Counter

from matrix.cell import Outcome
from matrix.events import CRASHES
from matrix.table import Row

# A tree may take this much more than glibc's before it is a fault.
MORE = 1.25
SMALL_KIB = 16 << 10
# With fewer the peak is chance: a short program may never have been weighed after its start.
FEW_SAMPLES = 5

_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+")


def faults(row: Row, base: list[Outcome], ours: Outcome) -> list[str]:
    """`base`: one run under glibc or more; what differs among them is not held against ours."""
    found = _endings(base, ours) + _signals(row, base, ours)
    found += _presence(row, ours)
    if not any(key in ours.statuses for key in ("command", "load")):
        return found  # it did not come so far
    found += _output(row, base, ours) + _stderr(row, base, ours) + _pictures(row, base, ours)
    for name, digest in ours.files.items():
        if digest not in [run.files[name] for run in base] and len({run.files[name] for run in base}) == 1:
            found.append(f"{name} is {'missing' if digest == 'missing' else 'another file'}")
    return found + _measures(row, base, ours) + _memory(row, base, ours)


def no_baseline(row: Row, run: Outcome) -> list[str]:
    """Why glibc's own run is nothing to compare with."""
    found = [f"{run.hung} did not end"] if run.hung else []
    found += [f"{step} ended with {status}" for step, status in run.statuses.items() if status != _expected(row, step, status)]
    found += [f"{name}: {killed}" for name, killed in run.signals if killed in CRASHES and not _is_free(row, name, killed)]
    if row.check and not re.search(row.check, run.output, re.M):
        found.append(f"{row.check!r} is not in the output")
    for measure in row.measures:
        if not re.search(measure.pattern, run.output, re.M):
            found.append(f"{measure.name} is not in the output")
    found += [f"{name} is missing" for name, digest in run.files.items() if digest == "missing"]
    return found + [f"{name} is missing" for name, path in run.pictures.items() if not path.is_file()]


def is_crash(fault: str) -> bool:
    return any(fault.startswith(name) for name in CRASHES)


def _expected(row: Row, step: str, status: int) -> int:
    if step in ("server", "stop"):
        return status  # how a server ends when told to is its own affair, as long as it is the same
    return row.status if step in ("command", "load") else 0


def _is_free(row: Row, name: str, killed: str) -> bool:
    return any(re.fullmatch(pattern, f"{name} {killed}") for pattern in row.signals_free)


def _endings(base: list[Outcome], ours: Outcome) -> list[str]:
    found = [f"hangs: {ours.hung} did not end"] if ours.hung else []
    if ours.overran:
        found.append(f"was ended at {ours.peak >> 10} MiB, half of the machine's memory")
    for step, status in base[0].statuses.items():
        got = ours.statuses.get(step)
        if got is None:
            if not ours.hung:
                found.append(f"{step} was not reached")
        elif got not in [run.statuses.get(step) for run in base]:
            found.append(f"{step} ends with {got}, glibc's with {status}")
    if left := set(ours.left_over).difference(*(run.left_over for run in base)):
        found.append(f"left running: {', '.join(sorted(left))}")
    return found


def _signals(row: Row, base: list[Outcome], ours: Outcome) -> list[str]:
    found = []
    for (name, killed), count in sorted(ours.signals.items()):
        usual = max(run.signals[name, killed] for run in base)
        # How many helpers are told to end is a matter of time; how many crash is not.
        excess = count > usual if killed in CRASHES else usual == 0 and not ours.hung
        if excess and not _is_free(row, name, killed):
            found.append(f"{killed} in {name}: {count}" + (f", glibc's {usual}" if usual else ""))
    return found


def _presence(row: Row, ours: Outcome) -> list[str]:
    found = [f"runs without the library: {name}" for name in sorted(ours.unserved) if not _matches(row.unserved, name)]
    if not found and ours.samples > 1 and not ours.served and not row.unserved:
        found.append("no process was seen with the library")
    return found


def _matches(patterns: list[str], name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def _output(row: Row, base: list[Outcome], ours: Outcome) -> list[str]:
    if row.check and not re.search(row.check, ours.output, re.M):
        return [f"{row.check!r} is not in the output" + _last(ours)]
    if row.output == "free":
        return []
    usual = [normalised(row, run.output) for run in base]
    got = normalised(row, ours.output)
    if got in usual or len(set(usual)) > 1:
        return []
    expected = usual[0].splitlines()
    for number, line in enumerate(got.splitlines()):
        if number >= len(expected) or line != expected[number]:
            return [f"other output: {_short(line)!r}"]
    return ["output ends early" + _last(ours)]


def _last(run: Outcome) -> str:
    lines = [line for line in (run.errors or run.output).splitlines() if line.strip()]
    return f"; it last said {_short(lines[-1])!r}" if lines else ""


def _stderr(row: Row, base: list[Outcome], ours: Outcome) -> list[str]:
    """Lines that glibc's run does not write. Numbers do not count, nor does order: servers log times and processes."""
    if row.errors == "free":
        return []
    usual = {_NUMBERS.sub("N", line) for run in base for line in normalised(row, run.errors).splitlines()}
    new = [line for line in normalised(row, ours.errors).splitlines() if line.strip() and _NUMBERS.sub("N", line) not in usual]
    return [f"new on stderr: {_short(new[0])!r}" + (f" and {len(new) - 1} more" if len(new) > 1 else "")] if new else []


def normalised(row: Row, text: str) -> str:
    for measure in row.measures:
        text = re.sub(measure.pattern, measure.name, text, flags=re.M)
    for pattern, replacement in row.normalise:
        text = re.sub(pattern, replacement, text, flags=re.M)
    return re.sub(r"[^\s'\"]*/numalloc-world-\w+/(glibc|numalloc)(-again)?\b", "RUN", text)  # each run has a folder of its own


def _pictures(row: Row, base: list[Outcome], ours: Outcome) -> list[str]:
    found = []
    for name, path in ours.pictures.items():
        if not path.is_file():
            found.append(f"{name} is missing")
        elif all((pixels := _different_pixels(run.pictures[name], path)) != 0 for run in base):
            found.append(f"{name}: {pixels} pixels differ")
    return found


def _different_pixels(one, other) -> int:
    compare = "/usr/bin/compare" if shutil.which("/usr/bin/compare") else "compare"
    done = subprocess.run([compare, "-metric", "AE", str(one), str(other), "null:"], capture_output=True, text=True)
    number = re.match(r"[\d.e+]+", done.stderr)
    return int(float(number[0])) if done.returncode < 2 and number else -1


def measured(row: Row, run: Outcome) -> dict[str, float]:
    found = {}
    for measure in row.measures:
        if match := re.search(measure.pattern, run.output, re.M):
            found[measure.name] = float(match[1])
    return found


def _measures(row: Row, base: list[Outcome], ours: Outcome) -> list[str]:
    found = []
    got = measured(row, ours)
    for measure in row.measures:
        usual = [measured(row, run)[measure.name] for run in base]
        if measure.name not in got:
            found.append(f"{measure.name} is not in the output")
            continue
        value = got[measure.name]
        over = measure.at_most and value > measure.at_most * max(usual)
        under = measure.at_least and value < measure.at_least * min(usual)
        if over or under:
            found.append(f"{measure.name}: {value:g}, glibc's {usual[0]:g}")
    return found


def _memory(row: Row, base: list[Outcome], ours: Outcome) -> list[str]:
    if row.memory == "free":
        return []
    found = []
    for what in ("peak", "settled"):
        usual = max(getattr(run, what) for run in base)
        got = getattr(ours, what)
        if what == "peak" and min(run.samples for run in base) < FEW_SAMPLES:
            continue
        if usual and got > MORE * usual + SMALL_KIB:
            found.append(f"{what} memory {got >> 10} MiB, glibc's {usual >> 10}")
    return found


def crashes(signals: Counter) -> int:
    return sum(count for (_, killed), count in signals.items() if killed in CRASHES)


def _short(line: str) -> str:
    line = line.strip()
    return line if len(line) <= 140 else line[:137] + "..."
