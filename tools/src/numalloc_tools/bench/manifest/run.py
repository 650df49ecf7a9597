"""One program of a manifest: builds it, prepares it, runs it under an allocator, measures and checks it."""

import os
import re
import shlex
import signal
import socket
import string
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from numalloc_tools import cache
from numalloc_tools.allocators import Allocator
from numalloc_tools.allocators.allocator import plain_environment
from numalloc_tools.allocators.beside import on_the_systems_malloc
from numalloc_tools.launch.launcher import Ended, Running
from numalloc_tools.programs import Work, judged
from numalloc_tools.programs.real.server import LoadFailed, served, temporary_folder
from numalloc_tools.programs.real.user import as_user, for_user

_PATIENCE = 600.0  # seconds for steps that are not measured: build, prepare, verify


@dataclass(frozen=True)
class Recipe:
    """A [[program]]; manifest/keys.py describes each member."""

    source_folder: Path
    name: str
    family: str
    description: str
    source: str
    needs: dict[str, str]
    threads: list[int]
    sizes: dict[str, int]
    paper: dict[str, int]
    build: list[str]
    prepare: list[str]
    command: str | None
    server: str | None
    ready: str | None
    load: str | None
    stop: str
    ends: list[int]
    environment: dict[str, str]
    user: str
    metric: str | dict[str, str]
    check: str | None
    verify: str | None
    quick: bool
    _built: list[str] = field(default_factory=list)  # empty until the build; then the reason of its failure, or ""

    def run(self, allocator: Allocator, work: Work) -> Ended:
        trouble = self._build()
        if trouble:
            return Ended({}, status="failed", reason=trouble)
        with temporary_folder() as name:
            folder = Path(name)
            allocator = for_user(allocator, folder, self.user)
            variables = self._variables(work, folder)
            try:
                for line in self.prepare:
                    self._shell(line, variables, folder)
                return self._started(allocator, work, folder, variables)
            except LoadFailed as reason:
                return Ended({}, status="failed", reason=f"prepare: {reason}")

    def _started(self, allocator: Allocator, work: Work, folder: Path, variables: dict[str, str]) -> Ended:
        words = [_filled(word, variables) for word in shlex.split(self.command or self.server)]
        environment = {name: _filled(value, variables) for name, value in self.environment.items()}
        allocator = on_the_systems_malloc(allocator, words[0]) if Path(words[0]).is_absolute() else allocator
        words = as_user(words, self.user)
        if self.server:
            return self._served(words, environment, allocator, work, folder, variables)
        running = Running(words, allocator, work.limit, folder, work.sample, environment)
        try:
            ended = running.end(tuple(self.ends))
        except BaseException:
            running.stop()
            raise
        if ended.status == "ok":
            try:
                if self.metric == "json":
                    judged(ended)
                else:
                    ended.figures["seconds"] = self._seconds(ended.stdout, ended.figures["wall"])
                self._right(ended.stdout)
                if self.verify and ended.status == "ok":
                    self._shell(self.verify, variables, folder)
            except LoadFailed as reason:
                ended.status, ended.reason = "wrong", str(reason)
        return ended

    def _served(
        self, words: list[str], environment: dict[str, str], allocator: Allocator, work: Work, folder: Path, variables: dict[str, str]
    ) -> Ended:
        # keys.py requires both for a server.
        ask, use = self.ready, self.load
        assert ask is not None and use is not None

        def ready() -> bool:
            try:
                self._shell(ask, variables, folder, 10)
            except LoadFailed:
                return False
            return True

        def load() -> tuple[int, float]:
            begun = time.perf_counter()
            said = self._shell(use, variables, folder, work.limit)
            seconds = self._seconds(said, time.perf_counter() - begun)
            self._right(said)
            if self.verify:
                self._shell(self.verify, variables, folder)
            return 1, seconds

        def stop(running: Running) -> None:
            running.ask_to_end(signal.Signals[self.stop])

        return served(words, allocator, work, folder, ready, load, None, stop, tuple(self.ends), environment)

    def _build(self) -> str:
        if not self._built:
            variables = {"SOURCE": str(self.source_folder), "BUILT": str(self._folder())}
            try:
                for line in self.build:
                    self._shell(line, variables, self._folder(), user="")
                self._built.append("")
            except LoadFailed as reason:
                self._built.append(f"build: {reason}")
        return self._built[0]

    def _folder(self) -> Path:
        return cache.directory("programs", self.name)

    def _variables(self, work: Work, folder: Path) -> dict[str, str]:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        sizes = self.paper if work.paper else self.sizes
        return {
            **{name: str(max(1, round(size * work.scale))) for name, size in sizes.items()},
            "THREADS": str(work.threads),
            "SEED": str(work.seed),
            "RUN": str(folder),
            "SOURCE": str(self.source_folder),
            "BUILT": str(self._folder()),
            "PORT": str(port),
        }

    def _seconds(self, said: str, wall: float) -> float:
        if isinstance(self.metric, str):
            return wall
        [(kind, pattern)] = self.metric.items()
        found = re.search(pattern, said, re.M)
        try:
            value = float(found[1].replace(",", "") if found else "")
        except ValueError:
            raise LoadFailed(f"it did not print its {kind}: no number at '{pattern}'") from None
        if value <= 0:
            raise LoadFailed(f"its {kind} is {value:g}")
        return value if kind == "seconds" else 1 / value

    def _right(self, said: str) -> None:
        if self.check and not re.search(self.check, said, re.M):
            last = (said.strip().splitlines() or ["nothing"])[-1]
            raise LoadFailed(f"it did not print '{self.check}'; it last said: {last[:200]}")

    def _shell(self, line: str, variables: dict[str, str], folder: Path, seconds: float = _PATIENCE, user: str | None = None) -> str:
        """Returns the output of a shell command. It uses the system's malloc, and all processes that it started end with it."""
        words = as_user(["sh", "-c", line], self.user if user is None else user)
        with subprocess.Popen(
            words,
            cwd=folder,
            env=plain_environment() | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as shell:
            try:
                said = shell.communicate(timeout=seconds)[0].decode(errors="replace")
            except BaseException as reason:
                os.killpg(shell.pid, signal.SIGKILL)
                if isinstance(reason, subprocess.TimeoutExpired):
                    raise LoadFailed(f"'{line[:60]}' did not end within {seconds:.0f} s") from None
                raise
        if shell.returncode:
            last = (said.strip().splitlines() or ["nothing"])[-1]
            raise LoadFailed(f"'{' '.join(line.split())[:60]}' ended with status {shell.returncode}; it last said: {last[:200]}")
        return said


def _filled(word: str, variables: dict[str, str]) -> str:
    return string.Template(word).safe_substitute(variables)
