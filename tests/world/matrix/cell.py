"""One row under one malloc: prepared, started, loaded, weighed, stopped, and gone afterwards."""

import hashlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from matrix import events, settings, tree
from matrix.table import Row

HERE = Path(__file__).resolve().parent.parent
_READY_SECONDS = 60.0
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class Outcome:
    """What one run was seen to do."""

    statuses: dict[str, int] = field(default_factory=dict)
    output: str = ""
    errors: str = ""
    signals: Counter = field(default_factory=Counter)
    unserved: set[str] = field(default_factory=set)
    served: set[str] = field(default_factory=set)
    samples: int = 0
    left_over: list[str] = field(default_factory=list)
    hung: str = ""  # the step that did not end
    files: dict[str, str] = field(default_factory=dict)
    pictures: dict[str, Path] = field(default_factory=dict)
    peak: int = 0  # KiB
    settled: int = 0  # KiB; servers only
    seconds: float = 0.0
    overran: bool = False  # took half of the machine's memory, and was ended
    lost: bool = False  # the watch could not keep up


class _Late(Exception):
    pass


class Cell:
    def __init__(self, row: Row, library: str, folder: Path, cache: Path, watch: str) -> None:
        self._row = row
        self._library = library  # empty: glibc's malloc
        self._folder = folder
        self._cache = cache
        self._kind = watch
        self._outcome = Outcome()
        self._deadline = time.monotonic() + row.timeout
        self._user = _identity(row.user)
        self._errors: list[Path] = []

    def run(self) -> Outcome:
        outcome = self._outcome
        shutil.rmtree(self._folder, ignore_errors=True)
        for folder in (self._folder, self._folder / "tmp", self._folder / "home"):
            folder.mkdir(parents=True)
            if self._user:
                os.chown(folder, self._user["user"], self._user["group"])
        begun = time.monotonic()
        watch = events.watch(self._kind, self._row.traces, self._folder)
        self._prefix = watch.prefix
        sampler = tree.Sampler(self._library, watch.name)
        try:
            with settings.changed(self._row.sysctl):
                self._steps(sampler)
        except _Late as late:
            outcome.hung = str(late)
            tree.kill()
            tree.reap()
        else:
            outcome.left_over = tree.left_over(watch.name)
        sampler.end()
        outcome.signals = watch.end()
        outcome.lost = watch.lost
        outcome.overran = sampler.overran
        outcome.peak, outcome.samples = sampler.peak, sampler.samples
        outcome.served, outcome.unserved = sampler.served(), sampler.unserved()
        outcome.seconds = time.monotonic() - begun
        outcome.errors = "".join(_text(path) for path in self._errors)
        for name in self._row.files:
            path = self._folder / name
            outcome.files[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
        outcome.pictures = {name: self._folder / name for name in self._row.pictures}
        return outcome

    def _steps(self, sampler: tree.Sampler) -> None:
        row, outcome = self._row, self._outcome
        for number, command in enumerate(row.prepare, 1):
            outcome.statuses[f"prepare {number}"] = self._step(f"prepare {number}", command)
        if row.command:
            outcome.statuses["command"] = self._step("command", row.command)
            outcome.output = _text(self._folder / "command.out")
            return
        server = self._start("server", row.server)
        self._wait_until_ready(server)
        if row.load:
            outcome.statuses["load"] = self._step("load", row.load)
            outcome.output = _text(self._folder / "load.out")
        time.sleep(row.settle)
        outcome.settled = sampler.now()
        if server.poll() is None:
            if row.stop and not row.stop.startswith("SIG"):
                outcome.statuses["stop"] = self._step("stop", row.stop)
            else:
                server.send_signal(signal.Signals[row.stop or "SIGTERM"])
        outcome.statuses["server"] = self._wait("server's end", server)

    def _wait_until_ready(self, server: subprocess.Popen) -> None:
        if not self._row.ready:
            return
        until = min(self._deadline, time.monotonic() + _READY_SECONDS)
        while self._step("ready", self._row.ready, keep_errors=False) != 0:
            if server.poll() is not None:
                return  # its status says it
            if time.monotonic() > until:
                raise _Late("the server's start")
            time.sleep(0.1)

    def _step(self, name: str, command: str, keep_errors: bool = True) -> int:
        return self._wait(name, self._start(name, command, keep_errors))

    def _start(self, name: str, command: str, keep_errors: bool = True) -> subprocess.Popen:
        stem = name.replace(" ", "-")
        errors = self._folder / f"{stem}.err"
        if keep_errors:
            self._errors.append(errors)
        environment = self._environment()
        prefix = self._prefix(environment.get("LD_PRELOAD", ""))
        if prefix:
            environment.pop("LD_PRELOAD", None)
        with open(self._folder / f"{stem}.out", "wb") as out, open(errors, "wb") as err:
            return subprocess.Popen(
                [*prefix, "/bin/sh", "-c", command],
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                umask=0o022,
                **(self._user or {}),
            )

    def _wait(self, name: str, process: subprocess.Popen) -> int:
        try:
            return process.wait(max(0.1, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise _Late(name) from None

    def _environment(self) -> dict[str, str]:
        environment = variables(self._row, self._cache) | {
            "HOME": f"{self._folder}/home",
            "TMPDIR": f"{self._folder}/tmp",
            "PORT": str(self._port()),
            "RUN": str(self._folder),
            "LIBRARY": self._library,
        }
        environment |= {name: os.path.expandvars(value) for name, value in self._row.env.items()}
        if self._library and self._row.preload:
            environment["LD_PRELOAD"] = self._library
        return environment

    def _port(self) -> int:
        """One for the whole run, from below the range that the kernel gives out by itself."""
        if not hasattr(self, "_chosen"):
            first = 20000 + os.getpid() % 5000
            self._chosen = next(port for port in range(first, first + 5000) if _is_free(port))
        return self._chosen


def variables(row: Row, cache: Path) -> dict[str, str]:
    """What commands may use, in builds as in runs."""
    folders = [f"{cache}/venv/bin"] if row.pypi else []
    folders += [f"{cache}/cargo/bin"] if row.cargo else []
    folders += [f"{cache}/npm/node_modules/.bin"] if row.npm else []
    return {
        "PATH": ":".join([*folders, _SYSTEM_PATH]),
        "BUILD": str(cache / "build" / row.name.replace(" ", "-").replace("/", "-")),
        "CACHE": str(cache),
        "PROGRAMS": str(HERE / "programs"),
        "GUEST_PROGRAMS": str(HERE.parents[1] / "tools/src/numalloc_tools/guest/programs"),
        "NUMALLOC": str(Path(sys.executable).with_name("numalloc")),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        # For what fetches: the user's own cargo may know registries that Debian's does not.
        "USER_PATH": os.environ.get("PATH", _SYSTEM_PATH),
        "USER_HOME": os.path.expanduser("~"),
    }


def _identity(user: str) -> dict | None:
    """Who runs it: the row's user if we may become it, else ourselves."""
    if not user or os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": os.getgrouplist(user, entry.pw_gid)}


def _is_free(port: int) -> bool:
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""
