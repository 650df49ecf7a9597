"""`numalloc top`: shows many processes, until a key ends it."""

import os
import signal
import sys
import time
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.live import Live

from numalloc_tools.checks import require_least
from numalloc_tools.completion import one_of
from numalloc_tools.machine.online import Machine, machine
from numalloc_tools.observe import keys, output, page
from numalloc_tools.observe.as_json import as_json
from numalloc_tools.observe.model import Moment
from numalloc_tools.observe.rates import rates
from numalloc_tools.observe.selection import MOST, Selection, pid_of
from numalloc_tools.observe.top_view import KEYS, ORDERS, Row, ordered, view
from numalloc_tools.problem import Problem

_FIRST_WAIT = 0.5  # the first rates appear soon


def top(
    pids: Annotated[
        Optional[list[str]],
        typer.Argument(
            help=f"The processes. Default: your {MOST} largest. A single process is shown in full.", metavar="[PID]...", show_default=False
        ),
    ] = None,
    name: Annotated[
        Optional[list[str]], typer.Option(help="Show the processes with this name; * and ? are wildcards. Repeatable.", metavar="NAME")
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between samples.", metavar="SECONDS")] = 2.0,
    times: Annotated[Optional[int], typer.Option("--count", help="End after N samples.", metavar="N")] = None,
    sort: Annotated[str, typer.Option(help=f"Sort by: {', '.join(ORDERS)}.", autocompletion=one_of(*ORDERS))] = "memory",
    json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each sample.")] = False,
) -> None:
    """Show your processes side by side: memory on each node, remote share, huge pages, page faults.

    In a terminal the view refreshes; otherwise each sample is printed. The command ends when all processes that
    were given by number have ended.
    """
    output.seconds_of(interval, "--interval")
    require_least(times, "--count")
    if sort not in ORDERS:
        raise Problem(f"--sort: '{sort}' is unknown; accepted: {', '.join(ORDERS)}")
    selection = Selection(tuple(pid_of(pid) for pid in pids or []), tuple(name or []))
    here = machine()
    selection.check(here)
    page.remove_stale()
    watcher = _Watcher(selection, here, sort)
    console = output.console()
    if sys.stdout.isatty() and not console.is_dumb_terminal and not json:
        _live(watcher, console, interval, times)
    else:
        _plain(watcher, console, interval, times, json)


class _Watcher:
    """The processes, with their figures of the previous sample."""

    def __init__(self, selection: Selection, here: Machine, order: str):
        self.selection, self.machine, self.order = selection, here, order
        self._before: dict[tuple[int, int], Moment] = {}

    def look(self) -> list[Row]:
        now = self.selection.moments(self.machine)
        rows = []
        for moment in now:
            earlier = self._before.get((moment.pid, moment.started))
            rows.append(Row(moment, earlier, rates(earlier, moment) if earlier else None))
        self._before = {(moment.pid, moment.started): moment for moment in now}
        return rows

    def shown(self, rows: list[Row], console: Console, live: bool):
        return view(rows, self.order, self.machine.nodes, console, live)


def _plain(watcher: _Watcher, console: Console, interval: float, times: int | None, json: bool) -> None:
    looked = 0
    while True:
        due = time.monotonic() + interval
        rows = watcher.look()
        if not rows and watcher.selection.over:
            return
        if json:
            found = [as_json(row.moment, row.earlier, row.rates) for row in ordered(rows, watcher.order)]
            output.line_of_json({"time": round(time.time(), 3), "processes": found})
        else:
            output.show(console, watcher.shown(rows, console, live=False), again=looked > 0)
        looked += 1
        if looked == times:
            return
        time.sleep(max(0.0, due - time.monotonic()))


def _live(watcher: _Watcher, console: Console, interval: float, times: int | None) -> None:
    with keys.ended_in_order():
        while _screen(watcher, console, interval, times) == keys.SUSPEND:
            os.kill(os.getpid(), signal.SIGSTOP)  # the terminal is restored; the shell continues, and fg returns to here


def _screen(watcher: _Watcher, console: Console, interval: float, times: int | None) -> str:
    """Refreshes until the key that ends it, or until all given processes have ended."""
    looked = 0
    with keys.keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while looked != times:
            rows = watcher.look()
            if not rows and watcher.selection.over:
                break
            looked += 1
            due = time.monotonic() + (min(interval, _FIRST_WAIT) if looked == 1 else interval)
            while (left := due - time.monotonic()) > 0:
                live.update(watcher.shown(rows, console, live=True), refresh=True)
                for key in pressed(left):
                    if key in (keys.QUIT, keys.SUSPEND):
                        return key
                    watcher.order = KEYS.get(key, watcher.order)
    return keys.QUIT
