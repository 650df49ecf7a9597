"""Programs whose parent stays: it passes signals on to them, they stop and continue as jobs do, and it returns their ends."""

import ctypes
import errno
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, Any

from numalloc_tools import processes
from numalloc_tools.launch import program
from numalloc_tools.launch.prepare import Launch
from numalloc_tools.problem import Problem

# Faults of this process itself, signals that cannot be caught, and job control, which reaches the whole group anyway.
_OWN = {signal.Signals[f"SIG{name}"] for name in "SEGV BUS FPE ILL TRAP SYS PIPE XFSZ XCPU KILL STOP CHLD CONT TSTP TTIN TTOU".split()}
_PASSED = signal.valid_signals() - _OWN
_FROM_KERNEL = 0x80  # si_code: the terminal sent it to the whole group
_SET_PDEATHSIG = 1
_SETTLING = 0.05  # seconds until a stop by the terminal has reached all processes
_libc = ctypes.CDLL(None)


@dataclass(frozen=True)
class Start:
    path: str
    words: list[str]
    environment: dict[str, str]
    launch: Launch
    stdin: int | IO | None = None
    stdout: IO | None = None
    logs: Callable[[], dict[str, IO]] | None = None  # opens further streams, which are closed here once the program has them


class Family:
    """The started programs. `statuses` are those of waitpid, by index; None while a program runs."""

    def __init__(self, starts: list[Start]):
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED, signal.SIGCHLD})
        self._children = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a process that ignores it gets no status of its children
        self.pids: list[int] = []
        self.statuses: list[int | None] = []
        self._processes = []  # kept, or Python would warn that nobody waits for them
        try:
            for start in starts:
                process = self._started(start)
                self._processes.append(process)
                self.pids.append(process.pid)
                self.statuses.append(None)
        except BaseException:
            self._end(signal.SIGKILL)
            while self._alive():
                self._take_ends(0)
            self.close()
            raise

    def run(self, look: Callable[[], float] | None = None) -> list[int]:
        """Returns when all have ended. Calls `look` from time to time; it returns the seconds until its next call."""
        due = time.monotonic()
        while self._alive():
            if look and time.monotonic() >= due:
                due = time.monotonic() + look()
            wait = max(due - time.monotonic(), 0) if look else 3600
            told = signal.sigtimedwait({*_PASSED, signal.SIGCHLD}, wait)
            if told is None:
                continue
            if told.si_signo == signal.SIGCHLD:
                self._take_ends(os.WNOHANG)
            elif told.si_code != _FROM_KERNEL:
                self._end(told.si_signo)
        return [status for status in self.statuses if status is not None]

    def close(self) -> None:
        while signal.sigtimedwait(_PASSED, 0):  # signals for programs that had ended
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def _started(self, start: Start) -> subprocess.Popen:
        logs = start.logs() if start.logs else {}
        try:
            return self._with_streams(start, {"stdin": start.stdin, "stdout": start.stdout, **logs})
        finally:
            for log in logs.values():
                log.close()

    def _with_streams(self, start: Start, streams: dict[str, Any]) -> subprocess.Popen:
        parent = os.getpid()

        def enter() -> None:
            _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL)  # as if the user had killed the program itself
            if os.getppid() != parent:
                os._exit(125)
            signal.signal(signal.SIGCHLD, self._children)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._before)
            start.launch.enter()

        def popen(path: str, words: list[str]) -> subprocess.Popen:
            return subprocess.Popen(words, executable=path, env=start.environment, preexec_fn=enter, close_fds=False, **streams)

        try:
            try:
                return popen(start.path, start.words)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                return popen("/bin/sh", ["/bin/sh", start.path, *start.words[1:]])
        except OSError as error:
            raise program.not_started(start.path, error) from None
        except subprocess.SubprocessError:
            calls = ", ".join(map(str, start.launch.calls))
            raise Problem(f"{start.path} was not started: the kernel has refused one of {calls}") from None

    def _alive(self) -> list[int]:
        return [pid for pid, status in zip(self.pids, self.statuses, strict=True) if status is None]

    def _end(self, number: int) -> None:
        for pid in self._alive():
            os.kill(pid, number)

    def _take_ends(self, flags: int) -> None:
        for place, pid in enumerate(self.pids):
            if self.statuses[place] is not None:
                continue
            found, status = os.waitpid(pid, flags | os.WUNTRACED)
            if found and os.WIFSTOPPED(status):
                self._stop_with(pid)
            elif found:
                self.statuses[place] = status
                self._processes[place].returncode = os.waitstatus_to_exitcode(status)

    def _stop_with(self, pid: int) -> None:
        """The only program has stopped: stops this process too, so that the shell sees it. A stop by the terminal has reached
        both already."""
        time.sleep(_SETTLING)
        if len(self.pids) == 1 and _stopped(pid):
            os.kill(os.getpid(), signal.SIGSTOP)
            if _stopped(pid):
                os.kill(pid, signal.SIGCONT)


def _stopped(pid: int) -> bool:
    try:
        return processes.stat(pid)[0] == "T"
    except OSError:
        return False


def worst(statuses: list[int]) -> int:
    """The status of several programs, as a shell numbers it: 128 and more is a signal."""
    return max(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status) for status in statuses)


def end_as(status: int) -> int:
    """The exit status; if a signal ended the program, ends this process by the same signal."""
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program wrote its own core file
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
