"""A program that runs under an allocator, is known to do so, and is gone afterwards."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numalloc_tools import processes
from numalloc_tools.allocators import Allocator
from numalloc_tools.problem import Problem

FAILED = 1  # exit status: a program went wrong under an allocator


def find(program: str, package: str) -> str:
    path = shutil.which(program)
    if not path:
        raise Problem(f"{program} is missing; install the Debian package {package}: apt-get install {package}")
    return path


def plain() -> dict[str, str]:
    """The environment of a program on the system's malloc."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


@contextmanager
def started(command: list[str], allocator: Allocator, log: Path, **streams) -> Iterator[subprocess.Popen]:
    """The running program; `log` takes what it says and nobody reads."""
    with open(log, "wb") as output:
        streams = {"stdin": subprocess.DEVNULL, "stdout": output, **streams, "stderr": output}
        environment = plain() | allocator.preloading() | streams.pop("env", {})
        process = subprocess.Popen(command, env=environment, **streams)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()


def _program(process: subprocess.Popen) -> str:
    words: Any = process.args  # a list, from started()
    return words[0]


def require_library(process: subprocess.Popen, allocator: Allocator) -> None:
    """A preload that the loader could not honour must not pass for a measurement."""
    if allocator.library is None:
        return
    maps = processes.text(process.pid, "maps")
    if str(allocator.library.resolve()) not in maps:
        raise Problem(f"{allocator.name}: {allocator.library} is not loaded in {_program(process)}; is it for this machine?", FAILED)


def failure(process: subprocess.Popen, allocator: Allocator, log: Path) -> Problem:
    """What became of a program that does not answer any more."""
    try:
        code = process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        ending = "does not answer"
    else:
        ending = f"was ended by {processes.signal_name(-code)}" if code < 0 else f"ended with status {code}"
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    last = f"; it last said: {lines[-1].strip()}" if lines else ""
    return Problem(f"{Path(_program(process)).name} {ending} under {allocator.name}{last}", FAILED)
