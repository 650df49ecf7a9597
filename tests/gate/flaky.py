"""flaky.py [--times N] [--since COMMIT] [TEST...]: repeats tests under conditions that a test of the gate must bear.

TEST is a name of ctest's (of build/release, build/ubsan or build/tsan, whichever has it) or of pytest's. Without one: the
tests whose files a change touched, 50 times each. Status 1 where one failed."""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from plan import PYTHON
from surroundings import ROOT, SEED, Surroundings, cpus, inherit_nothing, made

LIMIT = 3600  # seconds for one repeat of all; finds hangs
PRESETS = ("release", "ubsan", "tsan")


@dataclass(frozen=True)
class Run:
    """Some tests that one command runs, in any order."""

    tests: tuple[str, ...]
    folder: str = ""  # of ctest; empty for pytest

    def command(self, junit: Path, order: int) -> list[str]:
        if self.folder:
            names = "|".join(map(re.escape, self.tests))
            return ["ctest", "--test-dir", str(ROOT / self.folder), "-j", str(cpus()), "--schedule-random", "--output-on-failure",
                    "--no-tests=error", "--output-junit", str(junit), "-R", f"^({names})$"]  # fmt: skip
        turned = self.tests[order % len(self.tests) :] + self.tests[: order % len(self.tests)]
        return [PYTHON, "-m", "pytest", "-q", "-n", str(min(cpus(), len(turned))), "--dist", "loadgroup", f"--junitxml={junit}", *turned]


@contextmanager
def spinning(processes: int) -> Iterator[None]:
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def end(leader: subprocess.Popen) -> None:
    """With all of its session that is left."""
    with suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()


def listed(preset: str) -> list[dict]:
    folder = ROOT / "build" / preset
    if not (folder / "CTestTestfile.cmake").is_file():
        return []
    done = subprocess.run(["ctest", "--test-dir", str(folder), "--show-only=json-v1"], capture_output=True, text=True, timeout=300)
    return json.loads(done.stdout)["tests"] if done.returncode == 0 else []


def touched(since: str) -> list[str]:
    """Tests that name a changed file: a script of theirs, a program made from it, or a file of pytest's."""
    changed = subprocess.run(
        ["git", "diff", "--name-only", since, "--", "tests", "tools/tests"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    if changed.returncode:
        sys.exit(f"flaky: git cannot compare with '{since}': {changed.stderr.strip()}")
    paths = [Path(line) for line in changed.stdout.splitlines() if (ROOT / line).is_file()]
    names = [str(path) for path in paths if path.name.startswith("test_") and path.suffix == ".py"]
    stems = {path.stem for path in paths if path.suffix in (".cpp", ".c", ".sh", ".py")}
    for preset in PRESETS:
        for test in listed(preset):
            words = {Path(word).stem.removeprefix("survive_").removeprefix("threads_") for word in test.get("command", [])}
            if words & stems and "full" not in labels(test):
                names.append(test["name"])
    return list(dict.fromkeys(names))


def labels(test: dict) -> list[str]:
    return next((one["value"] for one in test.get("properties", []) if one["name"] == "LABELS"), [])


def runs_of(names: list[str]) -> list[Run]:
    runs = []
    python = tuple(name for name in names if ".py" in name)
    left = [name for name in names if ".py" not in name]
    if python:
        runs.append(Run(python))
    found: set[str] = set()
    for preset in PRESETS:
        there = {test["name"] for test in listed(preset)}
        if chosen := tuple(name for name in left if name in there):
            runs.append(Run(chosen, f"build/{preset}"))
            found |= set(chosen)
    if unknown := [name for name in left if name not in found]:
        sys.exit(f"flaky: no test '{unknown[0]}' in build/{', build/'.join(PRESETS)}; accepted: names that ctest -N prints, or pytest's")
    return runs


def once(run: Run, condition: str, around: Surroundings, repeat: int, work: Path) -> list[str]:
    """The names of the tests that failed; the run's log stays in `work`."""
    junit, log = work / f"{repeat}.xml", work / f"{repeat}-{condition.replace(' ', '-')}.log"
    environment = around.environment(online=False, full=False)
    command = run.command(junit, repeat)
    with ExitStack() as stack, log.open("wb") as output:
        words = around.around(online=False) + command
        if condition == "loaded":
            stack.enter_context(spinning(2 * cpus()))
        elif condition == "one CPU":
            words = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *words]
        elif condition == "signals ignored":
            words = ["sh", "-c", 'trap "" INT QUIT HUP; umask 077; exec "$@"', "sh", *words]
        elif condition == "nothing cached" and not any("tests/numa" in name for name in run.tests):  # these need a kernel
            environment |= {"XDG_CACHE_HOME": stack.enter_context(tempfile.TemporaryDirectory()), "LC_ALL": "C"}
        elif condition == "a second copy":
            second = run.command(work / "second.xml", repeat + 1)
            copy = subprocess.Popen(around.around(online=False) + second, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
            stack.callback(end, copy)
        process = subprocess.Popen(
            words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        stack.callback(end, process)
        try:
            status = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            return [f"{' '.join(run.tests)} (hangs)"]
    if status == 0:
        log.unlink()
        return []
    text = log.read_text(errors="replace")
    failed = re.findall(r"^\s*\d+ - (\S+) \(", text, re.MULTILINE) + re.findall(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
    return failed or [" ".join(run.tests)]


CONDITIONS = ("undisturbed", "loaded", "one CPU", "signals ignored", "nothing cached", "a second copy")


def main() -> int:
    parser = argparse.ArgumentParser(prog="flaky.sh", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=50, help="repeats of each test, spread over the conditions; 50 unless told")
    parser.add_argument("--since", default="HEAD~1", help="the change is what differs from this commit; HEAD~1 unless told")
    parser.add_argument("tests", nargs="*", metavar="TEST")
    arguments = parser.parse_args()
    if arguments.times < 1:
        parser.error(f"--times: {arguments.times} is not above 0")
    inherit_nothing()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    names = arguments.tests or touched(arguments.since)
    if not names:
        print(f"no test names a file that differs from {arguments.since}")
        return 0
    logs = ROOT / "build/flaky"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    failures: Counter[tuple[str, str]] = Counter()
    runs = runs_of(names)
    print(f"{len(names)} tests, {arguments.times} times, seed {SEED}: {', '.join(CONDITIONS)}", flush=True)
    begun = time.monotonic()
    with made(SEED) as around:
        for repeat in range(arguments.times):
            condition = CONDITIONS[repeat % len(CONDITIONS)]
            for run in runs:
                for name in once(run, condition, around, repeat, logs):
                    failures[name, condition] += 1
                    print(f"FAILED {name} ({condition}); {logs}/{repeat}-*.log", flush=True)
            print(f"{time.monotonic() - begun:6.0f} s  {repeat + 1} of {arguments.times} ({condition})", flush=True)
    for (name, condition), count in sorted(failures.items()):
        print(f"{name}: failed {count} times, {condition}")
    print("nothing failed" if not failures else f"{sum(failures.values())} failures; logs are in {logs}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
