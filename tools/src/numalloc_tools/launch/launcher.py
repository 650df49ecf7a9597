"""Starts a program under an allocator by a small launcher, which does not affect the measurement."""

import hashlib
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from numalloc_tools import cache, processes
from numalloc_tools.allocators import Allocator
from numalloc_tools.compiler import compiler
from numalloc_tools.problem import Problem

_SOURCE = Path(__file__).with_name("launcher.c")
_FLAGS = ["-O2", "-static"]
_NOT_FOUND = 127
_NOT_PRELOADED = "cannot be preloaded"


@dataclass
class Ended:
    """The end of a run: `trouble` is empty on success, otherwise a status and a reason."""

    figures: dict[str, float]
    stdout: str = ""
    stderr: str = ""
    status: str = "ok"
    reason: str = ""


def launcher() -> Path:
    """Compiled once for each version of its source."""
    key = hashlib.sha256(_SOURCE.read_bytes() + repr((compiler(), _FLAGS)).encode()).hexdigest()[:16]
    program = cache.directory("launcher", key) / "launcher"
    if not program.exists():
        work = Path(tempfile.mkdtemp(dir=program.parent)) / "launcher"
        done = subprocess.run([compiler(), *_FLAGS, str(_SOURCE), "-o", str(work)], capture_output=True, text=True)
        if done.returncode:
            raise Problem(f"the launcher cannot be compiled: {done.stderr.strip()}")
        os.rename(work, program)
        work.parent.rmdir()
    return program


class Running:
    """A started program. end() waits for it, or stops it, and returns its resources."""

    def __init__(
        self,
        command: list[str],
        allocator: Allocator,
        limit: float,
        folder: Path,
        sample: bool = False,
        environment: dict[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
    ):
        self.command, self.allocator = command, allocator
        self._stdout, self._stderr = folder / "stdout", folder / "stderr"
        reader, writer = os.pipe()
        words = [str(launcher()), str(writer), str(limit), str(int(sample)), allocator.preload or "-", *command]
        with open(self._stdout, "wb") as out, open(self._stderr, "wb") as err:
            self._launcher = subprocess.Popen(
                words,
                stdin=stdin,
                stdout=out,
                stderr=err,
                pass_fds=[writer],
                cwd=folder,
                env=allocator.environment() | (environment or {}),
                start_new_session=True,
                preexec_fn=allocator.enter if allocator.calls else None,
            )
        os.close(writer)
        self._results = os.fdopen(reader)
        first = self._results.readline().split()
        self.pid = int(first[1]) if len(first) == 2 else 0

    def alive(self) -> bool:
        return self._launcher.poll() is None

    def ask_to_end(self, number: int = signal.SIGTERM) -> None:
        if self.alive() and self.pid:
            os.kill(self.pid, number)

    def stop(self) -> None:
        """Kills it at once, with all processes that it started."""
        if self.alive():
            self._launcher.send_signal(signal.SIGTERM)
        self._launcher.wait()
        self._results.close()

    def end(self, expected: tuple[int, ...] = (0,)) -> Ended:
        lines = [line.split() for line in self._results]
        self._launcher.wait()
        self._results.close()
        figures = {words[0]: float(words[1]) for words in lines if len(words) == 2}
        if "user" in figures:
            figures["cpu_seconds"] = figures["user"] + figures["system"]
        ended = Ended(figures, self._text(self._stdout), self._text(self._stderr))
        ended.status, ended.reason = self._verdict(ended, expected)
        return ended

    @staticmethod
    def _text(path: Path) -> str:
        return path.read_bytes()[-4_000_000:].decode(errors="replace")

    def _verdict(self, ended: Ended, expected: tuple[int, ...]) -> tuple[str, str]:
        figures = ended.figures
        name = Path(self.command[0]).name
        said = [line for line in ended.stderr.strip().splitlines() if _NOT_PRELOADED not in line]
        last = f"; it last said: {said[-1].strip()[:200]}" if said else ""
        if "status" not in figures:
            return "crash", f"{name} could not be started or was stopped{last}"
        if figures.get("timed_out"):
            return "timeout", f"{name} was stopped after {figures['wall']:.0f} s{last}"
        if _NOT_PRELOADED in ended.stderr or figures.get("preloaded") == 0:
            return "not loaded", f"the loader did not load {self.allocator.preload}"
        if figures["signal"]:
            return "crash", f"{name} was ended by {processes.signal_name(int(figures['signal']))}{last}"
        if figures["status"] not in expected:
            if figures["status"] == _NOT_FOUND:
                return "missing", f"{name}: no such program"
            return "failed", f"{name} ended with status {figures['status']:.0f}{last}"
        return "ok", ""


def run(command: list[str], allocator: Allocator, limit: float, sample: bool = False, **more) -> Ended:
    """Runs it from start to end in a folder of its own; leaves nothing behind if the caller is interrupted."""
    with tempfile.TemporaryDirectory(prefix="numalloc-bench-") as folder:
        running = Running(command, allocator, limit, Path(folder), sample, **more)
        try:
            return running.end()
        except BaseException:
            running.stop()
            raise
