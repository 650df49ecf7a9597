"""The processes to inspect: those named, or all of the user's own."""

import fnmatch
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from numalloc_tools.machine.online import Machine
from numalloc_tools.observe import process
from numalloc_tools.observe.model import Moment
from numalloc_tools.observe.process import PROC, Unseen
from numalloc_tools.problem import Problem

MOST = 40  # of the user's own processes; the largest, because the kernel needs time to tell where memory is


def pid_of(text: str, what: str = "PID") -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise Problem(f"{what}: '{text}' is not a process; accepted: the number of a process, as ps shows it")
    return int(text)


@dataclass
class Selection:
    """PIDs and names (with * and ?); without any, all processes of the user. Never this process itself."""

    pids: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    all_of_them: bool = False  # not only the largest
    started: dict[int, int] = field(default_factory=dict)  # by PID, for those given by number: another process may get the number

    def check(self, machine: Machine) -> None:
        """Reports at once a PID that cannot be inspected."""
        for pid in self.pids:
            try:
                self.started[pid] = process.moment(pid, machine).started
            except Unseen as reason:
                raise Problem(str(reason)) from None

    def moments(self, machine: Machine) -> list[Moment]:
        found = []
        for pid in dict.fromkeys((*filter(self._is_the_same, self.pids), *self._others())):
            try:
                found.append(process.moment(pid, machine))
            except Unseen:  # it has ended, or the kernel does not show it
                continue
        return found

    @property
    def over(self) -> bool:
        """Whether all processes that were given by number have ended."""
        return bool(self.pids) and not self.names and not any(map(self._is_the_same, self.pids))

    def _is_the_same(self, pid: int) -> bool:
        """Whether the process still runs, and no other one has its number."""
        start = process.started(pid)
        return start is not None and start == self.started.get(pid, start)

    def _is_wanted(self, names: set[str]) -> bool:
        return any(fnmatch.fnmatchcase(name, wanted) for name in names for wanted in self.names)

    def _others(self) -> Iterable[int]:
        if self.names:
            return [pid for pid in _processes() if self._is_wanted(_names(pid))]
        if self.pids:
            return []
        own = [(_resident_pages(pid), pid) for pid in _processes(os.geteuid())]
        largest = sorted((found for found in own if found[0]), reverse=True)
        return [pid for _, pid in (largest if self.all_of_them else largest[:MOST])]


def _processes(owner: int | None = None) -> list[int]:
    found = []
    for folder in PROC.glob("[0-9]*"):
        try:
            if owner in (None, folder.stat().st_uid) and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        except FileNotFoundError:
            continue
    return found


def _names(pid: int) -> set[str]:
    """The kernel's name, which has at most 15 characters, and the name of the program's file."""
    folder = PROC / str(pid)
    try:
        command = (folder / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
        return {process.stat_of(folder)[0], Path(command).name}
    except OSError:
        return set()


def _resident_pages(pid: int) -> int:
    try:
        return int((PROC / str(pid) / "statm").read_text().split()[1])
    except OSError:
        return 0
