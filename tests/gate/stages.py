"""Runs a stage: its output goes to a log, a line every ten seconds says that it lives, and a limit ends what hangs."""

import ctypes
import os
import resource
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from plan import Stage, junit_of
from results import Test, limits_of_ctest, may_be_repeated, of_ctest, of_pytest
from surroundings import ROOT, Surroundings

HEARTBEAT = 10  # seconds
REPEAT_LIMIT = 3600  # seconds
TESTS_FAILED = (1, 8)  # the exit statuses of pytest and of ctest
COLUMNS = 110
PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Done:
    stage: Stage
    status: int
    seconds: float
    processor_seconds: float
    log: Path
    tests: list[Test] = field(default_factory=list)

    @property
    def failed(self) -> list[Test]:
        return [test for test in self.tests if test.verdict == "failed"]

    @property
    def passed(self) -> bool:
        """That tests failed is no failure any more once all of these have passed alone. A runner without a test is one."""
        if self.failed or (self.stage.tests and not self.tests):
            return False
        return self.status == 0 or (self.status in TESTS_FAILED and any(test.verdict == "unstable" for test in self.tests))


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def last_line(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def adopt_orphans() -> None:
    """What tests leave behind, in sessions of their own as well, becomes this process's child."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def ended(process: subprocess.Popen, seconds: float) -> bool:
    """Whether it ends in this time. Orphans that end are reaped at once: a test may wait until one is gone."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if child is None:
            time.sleep(0.05)
        elif child.si_pid == process.pid:
            process.wait()
            return True
        else:
            os.waitpid(child.si_pid, 0)
    return False


def children() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended since
            if int(path.read_bytes().rpartition(b")")[2].split()[1]) == os.getpid():
                found.append(int(path.parent.name))
    return found


def end_orphans() -> list[str]:
    """The command lines of those that were still running."""
    lines: dict[int, str] = {}
    while left := [pid for pid in children() if pid not in lines]:
        for pid in left:
            lines[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ").strip()
            with suppress(PermissionError):  # another user's
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    return [line for line in lines.values() if line]


def run_command(command: list[str], environment: dict[str, str], log: Path, limit: float, say: Callable[[str], None]) -> int:
    """Its status, 124 where the limit ended it. All that it has started ends with it, and so does any other child of ours."""
    begun = time.monotonic()
    with log.open("ab") as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        while not ended(process, HEARTBEAT):
            spent = time.monotonic() - begun
            if spent > limit:
                with log.open("a") as output:
                    output.write(f"\nstopped after {spent:.0f} s: the limit of this stage is {limit:.0f} s\n")
                return 124
            say(f"{spent:6.0f} s  {last_line(log)}"[:COLUMNS])
        return process.returncode
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for line in end_orphans():
            say(f"left behind, and ended now: {line}"[:COLUMNS])


def run(stage: Stage, around: Surroundings, logs: Path, full: bool, say: Callable[[str], None]) -> Done:
    log = logs / f"{stage.name}.log"
    log.write_bytes(b"")
    junit_of(logs, stage).unlink(missing_ok=True)
    environment = around.environment(stage.online, full)
    begun, used = time.monotonic(), processor_seconds()
    status = 0
    for command in stage.commands:
        words = [word.replace("@logs@", str(logs)) for word in command]
        status = run_command(around.around(stage.online) + words, environment, log, stage.limit, say)
        if status:
            break
    tests = read(stage, logs, log)
    for command in dict.fromkeys(test.repeat_alone for test in tests if may_be_repeated(test)):
        say(f"once more, alone: {command}")
        alone = replace(stage, name=f"{stage.name}.repeated")
        log_alone, junit = logs / f"{alone.name}.log", junit_of(logs, alone)
        junit.unlink(missing_ok=True)
        words = f"{command} {'--output-junit' if stage.tests == 'ctest' else '-o junit_family=xunit1 --junitxml'} {shlex.quote(str(junit))}"
        again = run_command([*around.around(stage.online), "sh", "-c", words], environment, log_alone, REPEAT_LIMIT, say)
        passed = {test.name for test in read(alone, logs, log_alone) if test.verdict == "passed"}
        for test in tests:
            if again == 0 and test.name in passed and may_be_repeated(test) and test.repeat_alone == command:
                test.verdict = "unstable"
    return Done(stage, status, time.monotonic() - begun, processor_seconds() - used, log, tests)


def read(stage: Stage, logs: Path, log: Path) -> list[Test]:
    junit = junit_of(logs, stage)
    if stage.tests == "ctest":
        tests = of_ctest(junit, log.read_text(errors="replace"), stage.folder)
        limits = limits_of_ctest(ROOT / stage.folder)
        for test in tests:
            test.limit = limits.get(test.name, 0)
        return tests
    if stage.tests == "pytest":
        return of_pytest(junit, ".venv/bin/python")
    return []
