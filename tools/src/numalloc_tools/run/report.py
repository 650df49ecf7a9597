"""Where a program's threads and memory were, by node: sampled while it runs, reported at its end."""

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

from rich.console import Console
from rich.table import Table
from rich.text import Text

from numalloc_tools import processes
from numalloc_tools.launch import nodes
from numalloc_tools.machine import memory
from numalloc_tools.machine.lists import ranges
from numalloc_tools.machine.online import node_of_cpu
from numalloc_tools.machine.words import printable

_FIRST, _LONGEST = 0.02, 0.5  # seconds between two samples: short programs need some too
_SHARE = 20  # times the duration of a sample: the pause after it, shorter after the first ones
_TICKS = os.sysconf("SC_CLK_TCK")
_PROCESSOR, _USER, _SYSTEM, _START = 36, 11, 12, 19  # fields of /proc/PID/stat after the name


@dataclass
class Watch:
    """One program with all processes that it starts."""

    pid: int
    label: str = ""
    looks: int = 0
    source: str = ""
    peak: dict[int, int] = field(default_factory=dict)  # bytes by node, at the peak of their sum
    last: dict[int, int] = field(default_factory=dict)
    threads: dict[int, int] = field(default_factory=dict)  # by node, at the peak of their sum
    seconds: dict[int, float] = field(default_factory=dict)  # of CPU time, by node
    moves: int = 0  # moves from node to node that two samples showed
    refused: bool = False  # to sample its memory
    _ended: float | None = None
    _begun: float = field(default_factory=time.monotonic)
    _pause: float = _FIRST
    _tries: int = 0
    _known: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)  # thread -> CPU ticks, node

    def look(self) -> float:
        begun = time.monotonic()
        if self._ended is None and not os.path.exists(f"/proc/{self.pid}"):
            self._ended = begun
        family = processes.family(self.pid)
        self._look_at_threads(family)
        self._look_at_memory(family)
        self._pause = min(2 * self._pause, _LONGEST)
        self._tries += 1
        return max(self._pause, min(_SHARE, 2 * self._tries) * (time.monotonic() - begun))

    def _look_at_threads(self, family: list[int]) -> None:
        here: Counter[int] = Counter()
        for thread, ticks, cpu in (found for pid in family for found in _threads(pid)):
            node = _node_of_cpu().get(cpu, 0)
            before, place = self._known.get(thread, (0, node))
            self.seconds[node] = self.seconds.get(node, 0.0) + (ticks - before) / _TICKS
            self.moves += place != node
            self._known[thread] = (ticks, node)
            here[node] += 1
        if sum(here.values()) >= sum(self.threads.values()):
            self.threads = dict(here)

    def _look_at_memory(self, family: list[int]) -> None:
        total: Counter[int] = Counter()
        for pid in family:
            try:
                found = memory.placement(pid)
            except PermissionError:
                self.refused = True
                continue
            except (OSError, ValueError):  # it has just ended
                continue
            total.update(found.nodes)
            self.source = found.source
        if total:
            self.looks += 1
            self.last = dict(total)
            if sum(total.values()) >= sum(self.peak.values()):
                self.peak = dict(total)

    def told(self, status: int) -> dict:
        used = {*self.peak, *self.last, *self.threads, *self.seconds, *nodes.read().online}
        return {
            "label": self.label,
            "pid": self.pid,
            "status": None if os.WIFSIGNALED(status) else os.WEXITSTATUS(status),
            "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            "seconds": (self._ended or time.monotonic()) - self._begun,
            "looks": self.looks,
            "source": self.source,
            "moves": self.moves,
            "refused": self.refused,
            "nodes": [
                {
                    "node": node,
                    "cpus": ranges(sorted(cpu for cpu, on in _node_of_cpu().items() if on == node), steps=False),
                    "threads": self.threads.get(node, 0),
                    "cpu_seconds": self.seconds.get(node, 0),
                    "peak_bytes": self.peak.get(node, 0) if self.looks else None,
                    "last_bytes": self.last.get(node, 0) if self.looks else None,
                }
                for node in sorted(used)
            ],
        }


def show(console: Console, told: dict, name: str) -> None:
    title = printable(f"{name}{': ' if told['label'] else ''}{told['label']}")
    ended = f"signal {told['signal']}" if told["signal"] else f"status {told['status']}"
    if not told["looks"] and not told["refused"]:
        console.print(
            f"{title}: no sample of its memory was possible before it ended ({told['seconds']:.2f} s, {ended})",
            soft_wrap=True,
            markup=False,
            emoji=False,
        )
        return
    table = Table(title=Text(title), title_justify="left")
    for column in ("node", "CPUs"):
        table.add_column(column)
    for column in ("CPU time", "threads", "peak", "end"):
        table.add_column(column, justify="right")
    totals = [sum(one[key] or 0 for one in told["nodes"]) for key in ("cpu_seconds", "peak_bytes", "last_bytes")]
    for one in told["nodes"]:
        table.add_row(
            str(one["node"]),
            one["cpus"] or "none",
            _share(one["cpu_seconds"], totals[0], f"{one['cpu_seconds']:.2f} s"),
            str(one["threads"]),
            _share(one["peak_bytes"], totals[1], _size(one["peak_bytes"])) if told["looks"] else "-",
            _share(one["last_bytes"], totals[2], _size(one["last_bytes"])) if told["looks"] else "-",
        )
    console.print(table)
    if told["refused"]:
        console.print(
            "the memory of programs that this user may not inspect is missing: another user's, setuid or unreadable programs",
            soft_wrap=True,
        )
    looked = f"sampled {told['looks']} {'time' if told['looks'] == 1 else 'times'} ({told['source']})" if told["looks"] else "not sampled"
    console.print(
        f"{told['seconds']:.2f} s, {ended}; {looked}; threads were seen to change their node {told['moves']} times",
        soft_wrap=True,
    )


def _share(value: float, of: float, text: str) -> str:
    return f"{text} {100 * value / of:3.0f}%" if of else text


def _size(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if value >= 10 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


@cache
def _node_of_cpu() -> dict[int, int]:
    return node_of_cpu() or dict.fromkeys(os.sched_getaffinity(0), 0)


def _threads(pid: int) -> list[tuple[tuple[int, str], int, int]]:
    """Yields each thread's number and start time (numbers are reused), its CPU ticks, and the CPU on which it last ran."""
    return [
        ((thread, fields[_START]), int(fields[_USER]) + int(fields[_SYSTEM]), int(fields[_PROCESSOR]))
        for thread, fields in processes.threads(pid).items()
    ]
