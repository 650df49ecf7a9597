"""How long tests wait, and for what. The limit finds what hangs; no machine is so slow that anything else takes that long."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil

LIMIT = 300  # seconds; the slowest wait of the gate takes a few on an idle machine
_LOOK = 0.02


def wait_until(happened: Callable[[], object], what: str = "it never happened") -> None:
    deadline = time.monotonic() + LIMIT
    while not happened():
        assert time.monotonic() < deadline, what
        time.sleep(_LOOK)


def children_named(pid: int, name: str) -> list[psutil.Process]:
    """Those of the process's descendants that run a program of that name."""
    return [one for one in psutil.Process(pid).children(recursive=True) if _said(one.name) == name]


def running_in(folder: Path) -> list[psutil.Process]:
    """Processes of a program in the folder, or with a file in it among their arguments. No other test has the folder."""
    return [one for one in psutil.process_iter() if any(str(folder) in word for word in _said(one.cmdline) or ())]


def alive(process: psutil.Process) -> bool:
    return process.is_running() and _said(process.status) not in (None, psutil.STATUS_ZOMBIE)


def _said(question: Callable):
    try:
        return question()
    except psutil.Error:  # it has ended
        return None
