"""Runs what experiments need, once each; what is there already and was made the same way is not run again."""

import hashlib
import json
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from numalloc_tools.bench.results import Results, read
from numalloc_tools.problem import Problem
from numalloc_tools.processes import own_command

from research import cli
from research.paper.table import Call

_INTERRUPTED = 130
_SIZED = ("group-median", "group-count", "hash-join", "index-join", "point-clusters")


@dataclass(frozen=True)
class How:
    """What the caller says of all runs."""

    library: Path
    output: Path
    cpus: int
    scale: float | None = None
    rounds: int | None = None
    allocators: str | None = None
    paper: bool = False

    @property
    def real(self) -> Path:
        for folder in self.library.parents:
            if (folder / "bench/real").is_dir():
                return folder / "bench/real"
        raise Problem(f"bench/real is in no folder above {self.library}; name the library of a working tree or a bundle with --library")

    def file(self, call: Call) -> Path:
        return self.output / "runs" / f"{call.name}.json"

    def document(self, call: Call) -> Path:
        return self.output / f"{call.name}.md"


def words(call: Call, how: How) -> list[str]:
    """The command line, without the name of numalloc or research."""
    sweep = [number for number in (1, 2, 4, 8, 16, 32, 64, 128) if number < how.cpus] + [how.cpus]
    known = {"cpus": how.cpus, "half": max(1, how.cpus // 2), "sweep": ",".join(map(str, sweep)), "real": how.real}
    own = [word.format(**known) for word in call.words]
    scale = [] if how.scale is None else ["--scale", f"{how.scale:g}"]
    library = ["--library", str(how.library)]
    names = ["--allocators", how.allocators] if how.allocators and not call.own_allocators else []
    if call.tool == "figures":
        return [
            "figures",
            *own,
            *scale,
            *library,
            *_peers(how),
            "--output",
            str(how.output / "modelled"),
            "--document",
            str(how.document(call)),
        ]
    rounds = ["--rounds", str(how.rounds)] if how.rounds and not call.own_rounds else []
    lab = ["--lab"] if call.tool == "lab" else []
    # Only analytics, three kernels and the applications know the papers' sizes; the rest would be refused.
    sizes = ["--paper"] if how.paper and _has_sizes(call) else []
    return [
        "bench",
        *own,
        *lab,
        *([] if lab and how.scale is None else scale),
        *library,
        *names,
        *rounds,
        *sizes,
        "--json",
        str(how.file(call)),
    ]


def _peers(how: How) -> list[str]:
    """figures compares numalloc with each, and says so by itself."""
    peers = [name for name in (how.allocators or "").split(",") if name and name != "numalloc"]
    return ["--allocators", ",".join(peers)] if peers else []


def _has_sizes(call: Call) -> bool:
    return "--programs" in call.words or call.words[1].startswith(_SIZED)


def _key(call: Call, how: How) -> str:
    """Of the command and the library: others must not have it counted again."""
    digest = hashlib.sha256(how.library.read_bytes())
    digest.update(repr([word for word in words(call, how) if word != str(how.library)]).encode())
    return digest.hexdigest()


def done(call: Call, how: How) -> bool:
    try:
        kept = json.loads(how.file(call).with_suffix(".key").read_text())
    except (OSError, ValueError):
        return False
    there = how.document(call) if call.tool == "figures" else how.file(call)
    return kept == _key(call, how) and there.is_file()


def run(call: Call, how: How) -> str:
    """Empty, or why it has no results. Ctrl-C goes through."""
    if done(call, how):
        return ""
    how.file(call).parent.mkdir(parents=True, exist_ok=True)
    how.file(call).with_suffix(".key").unlink(missing_ok=True)
    status, errors = _ended([*(cli.own_command() if call.tool == "figures" else own_command()), *words(call, how)], how.real.parents[1])
    if status == _INTERRUPTED:
        raise KeyboardInterrupt
    if status:
        said = errors.strip().splitlines()
        return said[-1].removeprefix("numalloc: ") if said else f"it ended with status {status}"
    how.file(call).with_suffix(".key").write_text(json.dumps(_key(call, how)))
    return ""


def _ended(command: list[str], folder: Path) -> tuple[int, str]:
    """Status and standard error. In a session of its own, so that one signal reaches it: it keeps what it has by then."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until there is a process to hand it on to
    try:
        with subprocess.Popen(
            command, cwd=folder, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=_interruptible
        ) as running:
            try:
                _interruptible()
                errors = running.communicate()[1]
            except KeyboardInterrupt:
                running.send_signal(signal.SIGINT)
                try:
                    running.communicate()
                except KeyboardInterrupt:  # who asks twice does not want to wait
                    running.kill()
                raise
        return running.returncode, errors
    finally:
        _interruptible()


def _interruptible() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def results(call: Call, how: How) -> Results | None:
    return read(how.file(call)) if how.file(call).is_file() else None
