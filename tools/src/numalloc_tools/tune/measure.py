"""One run of the program under one setting: its duration, its resources and its end."""

import errno
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from numalloc_tools import processes
from numalloc_tools.launch import Launch
from numalloc_tools.problem import Problem
from numalloc_tools.tune import tree
from numalloc_tools.tune.metric import Metric, NoMetric

_OFTEN, _SELDOM = 0.001, 0.05  # seconds between samples of /proc
_MISSED = 0.02  # the unseen end of a run, as a fraction of it, at this rate of samples
_LOOKS_COST = 20  # the pause after a sample, as a multiple of its processor time
_GRACE = 2.0  # seconds to end after SIGTERM, before SIGKILL
_KEPT = 4_000_000  # bytes of output, from its end


class _Held:
    """If a signal interrupted the start of a program, this process would never know its number, and leave it running. So
    signals that end this process are handled after the start. Blocking them is not enough: a thread of a library would
    get them."""

    def __enter__(self) -> "_Held":
        self._came: list[int] = []
        held = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        self._before = {number: signal.signal(number, lambda number, _: self._came.append(number)) for number in held}
        return self

    def release(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}
        while self._came:
            signal.raise_signal(self._came.pop())

    def __exit__(self, *_) -> None:
        self.release()


@dataclass
class Run:
    """The resources of one run. Times are in seconds, of all processes of the tree that were waited for."""

    seconds: float
    user: float = 0.0
    system: float = 0.0
    minor_faults: int = 0
    major_faults: int = 0
    waits: int = 0  # voluntary context switches
    preemptions: int = 0
    peak_bytes: int = 0
    value: float | None = None  # the program's own metric
    failure: str = ""

    def as_data(self) -> dict:
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}


@dataclass
class Program:
    command: list[str]
    metric: Metric | None = None
    limit: float | None = None  # seconds of one run, if known
    stdin: Path | None = None
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def run(self, launch: Launch, command: list[str], look: Callable[[list[int]], None] | None = None, limit: float | None = None) -> Run:
        """Calls `look` with the processes from time to time. Stops them after `limit` seconds."""
        with tempfile.TemporaryFile() as output, open(self.stdin or os.devnull, "rb") as stdin, _Held() as held:
            child = self._started(launch, command, stdin, output)
            begun = time.monotonic()  # the program runs: Popen waits for exec
            watched = _Watched(child.pid, look)
            try:
                held.release()
                status, used, in_time = watched.wait(begun + limit if limit else None)
                seconds = time.monotonic() - begun
            finally:
                watched.end(child)
            return self._result(command, output, status, used, in_time, seconds, watched.peak)

    def _started(self, launch: Launch, command: list[str], stdin: IO, output: IO) -> subprocess.Popen:
        try:
            return subprocess.Popen(
                command,
                env=launch.applied_to(self.environment),
                stdin=stdin,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=launch.enter,
            )
        except FileNotFoundError:
            raise Problem(f"{command[0]}: no such program", 127) from None
        except (OSError, subprocess.SubprocessError) as error:
            raise Problem(f"{command[0]} cannot be started: {error}", 126) from None

    def _result(self, command, output, status, used, in_time: bool, seconds: float, peak: int) -> Run:
        # The kernel's peak includes this process's memory at the fork, so only a larger peak is the program's.
        most = used.ru_maxrss * 1024
        if most > tree.resident([os.getpid()]):
            peak = max(peak, most)
        run = Run(
            seconds,
            used.ru_utime,
            used.ru_stime,
            used.ru_minflt,
            used.ru_majflt,
            used.ru_nvcsw,
            used.ru_nivcsw,
            peak,
        )
        text = _end_of(output)
        code = os.waitstatus_to_exitcode(status)
        name = os.path.basename(command[0])
        if not in_time:
            run.failure = f"{name} was stopped after {seconds:.1f} s"
        elif code < 0:
            run.failure = f"{name} was ended by {processes.signal_name(-code)}"
        elif code:
            run.failure = f"{name} ended with status {code}"
        elif self.metric:
            try:
                run.value = self.metric.read(text)
            except NoMetric as reason:
                run.failure = str(reason)
                return run
        if run.failure and (said := text.strip().splitlines()):
            run.failure += f"; it last said: {said[-1].strip()[:200]}"
        return run


class _Watched:
    """Waits for a process, and samples its memory."""

    def __init__(self, pid: int, look: Callable[[list[int]], None] | None):
        self.pid, self._look = pid, look
        self.peak = 0
        self._gone = False

    def wait(self, deadline: float | None) -> tuple[int, object, bool]:
        ended = select.poll()
        descriptor = _end_of_process(self.pid)
        try:
            ended.register(descriptor, select.POLLIN)
            self.peak = tree.resident([self.pid])  # a short run may get no other sample
            started, pause = time.monotonic(), _OFTEN
            while not ended.poll(1000 * (pause if deadline is None else max(min(pause, deadline - time.monotonic()), 0))):
                if deadline is not None and time.monotonic() >= deadline:
                    self._stop(ended)
                    return *self._reap(), False
                begun = time.thread_time()
                pids = processes.family(self.pid)
                self.peak = max(self.peak, tree.resident(pids))
                if self._look:
                    self._look(pids)
                pause = min(max(_MISSED * (time.monotonic() - started), _OFTEN), _SELDOM)
                cost = 1 if self._look else _LOOKS_COST  # a run that is only observed has no measured time
                pause = max(pause, cost * (time.thread_time() - begun))
            return *self._reap(), True
        finally:
            os.close(descriptor)

    def _stop(self, ended: select.poll) -> None:
        self._signal(signal.SIGTERM)
        if not ended.poll(1000 * _GRACE):
            self._signal(signal.SIGKILL)

    def _reap(self) -> tuple[int, object]:
        _, status, used = os.wait4(self.pid, 0)
        self._gone = True
        return status, used

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def end(self, child: subprocess.Popen) -> None:
        """Leaves no process running, even if the wait is interrupted."""
        try:
            if not self._gone:
                self._signal(signal.SIGTERM)
                until = time.monotonic() + _GRACE
                while os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None and time.monotonic() < until:
                    time.sleep(0.01)
        finally:  # a second Ctrl-C ends the wait
            self._signal(signal.SIGKILL)  # the program, or processes that it started and left
            if not self._gone:
                self._reap()
            child.returncode = 0  # it was waited for


def _end_of_process(pid: int) -> int:
    """A descriptor that becomes readable when the process ends."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, error.errno)
        accepted = "Linux 5.3, and in a container a seccomp filter that allows it"
        raise Problem(f"the kernel refuses pidfd_open ({name}); accepted: {accepted}") from None


def _end_of(output) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(size - _KEPT, 0))
    return output.read().decode(errors="replace")
