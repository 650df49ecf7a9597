"""The same program on this machine: whether what was counted and modelled is what is so, as far as one can tell here.

Instructions are compared with callgrind's. Modelled processor time, of all CPUs together and with all memory equally near,
stands beside the time that the program took here, in interleaved rounds: what has to agree is the order of the allocators.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from numalloc_tools.allocators import Allocator
from numalloc_tools.launch import launcher
from numalloc_tools.problem import Problem
from rich.console import Console
from scipy.stats import kendalltau

from research.scope import model, tables
from research.scope.hardware import Hardware
from research.scope.results import Run

_COLLECTED = re.compile(r"Collected : (\d+)")
_LIMIT = 600.0  # seconds for a run here
_CALLGRIND_LIMIT = 3600.0  # it takes fifty times as long


@dataclass(frozen=True)
class Beside:
    """One allocator."""

    allocator: str
    counted: float  # instructions
    callgrind: float  # 0: not known
    modelled: float  # seconds
    user: float
    system: float
    spread: float  # half the range of user and system time over their median

    @property
    def off(self) -> float:
        """Of the instructions, counted more than callgrind has them."""
        return self.counted / self.callgrind - 1


def near(hardware: Hardware) -> Hardware:
    """All memory and every cache as near as the own node's: this machine's one node."""
    equal = {
        f"{what}{place}": [hardware.latency[what]] if place == "_hops" else hardware.latency[what]
        for what in ("memory", "transfer")
        for place in ("_same_package", "_hops")
    }
    return replace(hardware, latency=hardware.latency | equal)


def local_command(command: list[str]) -> list[str]:
    """It runs in a folder of its own: what names files names them wholly."""
    program = shutil.which(command[0])
    if program is None:
        raise Problem(f"--host: {command[0]} is not on this machine; accepted: a program that can be run here")
    return [os.path.abspath(program), *(os.path.abspath(word) if os.path.isfile(word) else word for word in command[1:])]


def beside(
    runs: list[Run], compared: list[Allocator], command: list[str], rounds: int, say: Callable[[str], None], callgrind: bool = True
) -> list[Beside]:
    words = local_command(command)
    times: dict[str, list[tuple[float, float]]] = {one.name: [] for one in compared}
    for number in range(rounds):
        for place in range(len(compared)):
            allocator = compared[(place + number) % len(compared)]
            ended = launcher.run(words, allocator, _LIMIT)
            if ended.status != "ok":
                raise Problem(f"--host: {allocator.name}: {ended.reason}; accepted: a program that runs here", 1)
            times[allocator.name].append((ended.figures["user"], ended.figures["system"]))
        say(f"round {number + 1} of {rounds} on this machine")
    found = []
    for run, allocator in zip(runs, compared, strict=True):
        both = [sum(pair) for pair in times[allocator.name]]
        user, system = (median(column) for column in zip(*times[allocator.name], strict=True))
        spread = (max(both) - min(both)) / 2 / (median(both) or 1)
        flat = model.modelled(run.scope, near(run.hardware))
        collected = _callgrind(words, allocator) if callgrind else 0.0
        found.append(Beside(allocator.name, run.scope.instructions, collected, sum(flat.cpu_seconds), user, system, spread))
    return found


def _callgrind(command: list[str], allocator: Allocator) -> float:
    valgrind = shutil.which("valgrind")
    if not valgrind:
        return 0.0
    environment = allocator.environment() | allocator.preloading()
    words = [valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", *command]
    try:
        done = subprocess.run(
            words, env=environment, capture_output=True, text=True, errors="replace", cwd=Path("/tmp"), timeout=_CALLGRIND_LIMIT
        )
    except subprocess.TimeoutExpired:
        return 0.0
    collected = _COLLECTED.search(done.stderr)
    return float(collected[1]) if collected and done.returncode == 0 else 0.0


def agreement(found: list[Beside], key: Callable[[Beside], float]) -> float:
    """Kendall's tau of the orders by modelled and by measured time: 1 the same, 0 unrelated, -1 reversed."""
    return float(kendalltau([one.modelled for one in found], [key(one) for one in found]).statistic)


def show(terminal: Console, found: list[Beside]) -> None:
    columns = ("", "instructions", "callgrind's", "off by", "modelled, one node", "user time here", "system", "+-")
    table = tables.made("Beside this machine", columns)
    for one in sorted(found, key=lambda one: one.modelled):
        off = f"{100 * one.off:+.2f} %" if one.callgrind else "-"
        counted = tables.number(one.callgrind) if one.callgrind else "-"
        table.add_row(
            one.allocator,
            tables.number(one.counted),
            counted,
            off,
            *map(tables.time, (one.modelled, one.user, one.system)),
            f"{100 * one.spread:.0f} %",
        )
    terminal.print(table)
    if len(found) > 1:
        user, both = agreement(found, lambda one: one.user), agreement(found, lambda one: one.user + one.system)
        terminal.print(
            f"Order by modelled and by measured time (Kendall's tau, 1 is the same): {user:.2f} of user time, {both:.2f} with the system's."
        )
    if not all(one.callgrind for one in found):
        terminal.print("callgrind's count is not there: it needs the Debian package valgrind, and a program that runs under it.")
