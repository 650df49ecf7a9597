"""flaky.py [--times N] [--since COMMIT] [TEST...]: repeats tests under conditions that a test of the gate must bear.

TEST is a name of ctest's (of build/release, build/ubsan and build/tsan, where they have it) or of pytest's; of a file, its
tests of the gate. Without one: the tests whose files a change touched, 50 times each. Status 1 where one failed, or was
skipped and tests/skips.toml does not say so."""

import argparse
import json
import os
import random
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
from results import Skips, of_ctest, of_pytest
from surroundings import PRESETS, ROOT, SEED, Surroundings, cpus, inherit_nothing, made

LIMIT = 3600  # seconds for one repeat of all; finds hangs
NOTHING_SELECTED = 5  # an exit status of pytest's


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
        shuffled = random.Random(order).sample(self.tests, len(self.tests))
        return [PYTHON, "-m", "pytest", "-q", "-n", str(min(cpus(), len(shuffled))), "--dist", "loadgroup", "-o", "junit_family=xunit1",
                f"--junitxml={junit}", *shuffled]  # fmt: skip


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
    changed: list[str] = []
    for words in (["diff", "--name-only", since], ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(
            ["git", *words, "--", "tests", "tools/tests", "research/tests"], cwd=ROOT, capture_output=True, text=True, timeout=60
        )
        if done.returncode:
            sys.exit(f"flaky: git cannot compare with '{since}': {done.stderr.strip()}")
        changed += done.stdout.splitlines()
    paths = [Path(line) for line in changed if (ROOT / line).is_file()]
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


def collected(names: list[str]) -> tuple[str, ...]:
    """Single tests of pytest's."""
    found: list[str] = []
    files = [name for name in names if "::" not in name]
    for chosen, words in ((files, ["-m", "not full"]), ([name for name in names if name not in files], [])):
        command = [PYTHON, "-m", "pytest", "--collect-only", "-q", "-p", "no:warnings", *words, *chosen]
        if chosen:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
            if done.returncode not in (0, NOTHING_SELECTED):
                sys.exit(f"flaky: pytest does not take {' '.join(chosen)}:\n{done.stdout}{done.stderr}")
            found += [line for line in done.stdout.splitlines() if "::" in line]
    return tuple(found)


def runs_of(names: list[str]) -> list[Run]:
    python = collected([name for name in names if ".py" in name])
    left = [name for name in names if ".py" not in name]
    runs = [Run(python)] if python else []
    found: set[str] = set()
    for preset in PRESETS:
        there = {test["name"] for test in listed(preset)}
        if chosen := tuple(name for name in left if name in there):
            runs.append(Run(chosen, f"build/{preset}"))
            found |= set(chosen)
    if unknown := [name for name in left if name not in found]:
        sys.exit(f"flaky: no test '{unknown[0]}' in build/{', build/'.join(PRESETS)}; accepted: names that ctest -N prints, or pytest's")
    return runs


def once(run: Run, condition: str, around: Surroundings, repeat: int, work: Path, conditions: set[str]) -> list[str]:
    """The names of the tests that failed; the logs of such stay in `work`."""
    environment = around.environment(online=False, full=False)
    words = around.around(online=False)
    with ExitStack() as stack:
        if condition == "loaded":
            stack.enter_context(spinning(2 * cpus()))
        elif condition == "one CPU":
            words = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *words]
        elif condition == "signals ignored":
            words = ["sh", "-c", 'trap "" INT QUIT HUP; umask 077; exec "$@"', "sh", *words]
        elif condition == "nothing cached" and not any("tests/numa" in name for name in run.tests):  # these need a kernel
            environment |= {"XDG_CACHE_HOME": stack.enter_context(tempfile.TemporaryDirectory()), "LC_ALL": "C"}
        started = []
        for copy in range(2 if condition == "a second copy" else 1):
            log = work / f"{repeat}-{condition.replace(' ', '-')}-{Path(run.folder).name or 'pytest'}-{copy}.log"
            command = [*words, *run.command(log.with_suffix(".xml"), 2 * repeat + copy)]
            output = stack.enter_context(log.open("wb"))
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
            stack.callback(end, process)
            started.append((process, log))
        until = time.monotonic() + LIMIT
        for process, _ in started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0, until - time.monotonic()))
        ends = [(process.poll(), log) for process, log in started]
    skips = Skips(ROOT / "tests", conditions | {condition})  # one CPU is among them
    return [name for status, log in ends for name in failures(run, status, log, skips)]


def failures(run: Run, status: int | None, log: Path, skips: Skips) -> list[str]:
    """Of a copy that ended so; None: it did not."""
    junit = log.with_suffix(".xml")
    tests = of_ctest(junit, log.read_text(errors="replace"), run.folder) if run.folder else of_pytest(junit, PYTHON)
    found = [test.name for test in tests if test.verdict == "failed"]
    found += [f"{test.name} (skipped)" for test in skips.unexpected(tests)]
    if not found and (status != 0 or not tests):
        found = [" ".join(run.tests) + (" (hangs)" if status is None else "")]
    if not found:
        log.unlink()
    return found


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
    runs = runs_of(arguments.tests or touched(arguments.since))
    if not runs:
        print(f"no test of the gate is among these, or names a file that differs from {arguments.since}")
        return 0
    logs = ROOT / "build/flaky"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    failed: Counter[tuple[str, str]] = Counter()
    print(f"{sum(len(run.tests) for run in runs)} tests, {arguments.times} times, seed {SEED}: {', '.join(CONDITIONS)}", flush=True)
    begun = time.monotonic()
    with made(SEED) as around:
        conditions = around.conditions()
        for repeat in range(arguments.times):
            condition = CONDITIONS[repeat % len(CONDITIONS)]
            for run in runs:
                for name in once(run, condition, around, repeat, logs, conditions):
                    failed[name, condition] += 1
                    print(f"FAILED {name} ({condition}); {logs}/{repeat}-*.log", flush=True)
            print(f"{time.monotonic() - begun:6.0f} s  {repeat + 1} of {arguments.times} ({condition})", flush=True)
    for (name, condition), count in sorted(failed.items()):
        print(f"{name}: failed {count} times, {condition}")
    print("nothing failed" if not failed else f"{failed.total()} failures; logs are in {logs}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
