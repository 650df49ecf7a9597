"""Queries to apt. While another apt refreshes the package lists, packages seem unknown: such an answer is not final, and
the query is repeated when the lists are complete."""

import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 300  # seconds; a refresh over a slow line takes one or two minutes
_PAUSE = 1.0

Answer = subprocess.CompletedProcess


def asked(command: list[str], cwd: str | None = None, good: Callable[[Answer], bool] = lambda answer: answer.returncode == 0) -> Answer:
    """The command's answer: the first success, or the first answer from lists that did not change."""
    deadline = time.monotonic() + PATIENCE
    while True:
        before = _state()
        answer = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
        if good(answer) or (_state() == before and not _refreshing()) or time.monotonic() > deadline:
            return answer
        time.sleep(_PAUSE)


def _lists() -> Path:
    told = subprocess.run(["apt-config", "shell", "lists", "Dir::State::lists/d"], capture_output=True, text=True).stdout
    found = re.match(r"lists='(.*)'", told)
    return Path(found[1] if found else "/var/lib/apt/lists")


def _state() -> int:
    """A value that changes with every list that is added or removed."""
    try:
        return os.stat(_lists()).st_mtime_ns
    except OSError:
        return 0


def _refreshing() -> bool:
    """Whether a process holds the lists' lock. Only root can open the lock; everyone can read the kernel's table."""
    try:
        lock = os.stat(_lists() / "lock")
        table = Path("/proc/locks").read_text()
    except OSError:
        return False
    # By the inode alone: on overlayfs and btrfs the table's device differs from stat's.
    return any(re.search(rf" WRITE .*:{lock.st_ino} ", line) and "->" not in line for line in table.splitlines())
