"""`numalloc stat PID...`: shows processes in full, once or repeatedly."""

import sys
import time
from typing import Annotated, Optional

import typer

from numalloc_tools.checks import require_least
from numalloc_tools.machine.online import Machine, machine
from numalloc_tools.observe import output, page, process
from numalloc_tools.observe.as_json import as_json
from numalloc_tools.observe.detail import detail
from numalloc_tools.observe.model import Moment
from numalloc_tools.observe.process import Gone, Unseen
from numalloc_tools.observe.rates import rates
from numalloc_tools.observe.selection import pid_of
from numalloc_tools.problem import Problem


def stat(
    pids: Annotated[list[str], typer.Argument(help="The numbers of the processes.", metavar="PID...", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each sample of each process.")] = False,
    watch: Annotated[
        Optional[float],
        typer.Option(help="Repeat every SECONDS until the processes end, and show rates per second.", metavar="SECONDS"),
    ] = None,
    times: Annotated[Optional[int], typer.Option("--count", help="With --watch: the number of samples.", metavar="N")] = None,
) -> None:
    """Show where the memory and the threads of processes are, and the statistics of the library in them.

    Works for any program. The library's statistics need NUMALLOC_STATISTICS_PAGE=1 at the program's start. With
    --watch, the exit status is 0 when the processes end.
    """
    watched: dict[int, Moment | None] = {pid_of(pid): None for pid in pids}
    if watch is not None:
        output.seconds_of(watch, "--watch")
    elif times is not None:
        raise Problem("--count: has no effect without --watch; accepted: together with --watch SECONDS")
    require_least(times, "--count")
    here = machine()
    page.remove_stale()
    console = output.console()
    looked = shown = 0
    while True:
        due = time.monotonic() + (watch or 0)
        for now, earlier in _look(watched, here):
            happened = rates(earlier, now) if earlier else None
            if json:
                output.line_of_json(as_json(now, earlier, happened))
            else:
                output.show(console, detail(now, earlier, happened, console.width), again=shown > 0)
            shown += 1
        looked += 1
        if watch is None or looked == times or not watched:
            return
        time.sleep(max(0.0, due - time.monotonic()))


def _look(watched: dict[int, Moment | None], here: Machine) -> list[tuple[Moment, Moment | None]]:
    """Each process now and in the previous look. Drops those that have ended."""
    found = []
    for pid, earlier in list(watched.items()):
        now: Moment | None = None
        lost = f"process {pid} has ended"
        try:
            now = process.moment(pid, here)
        except Unseen as reason:
            if earlier is None or (not isinstance(reason, Gone) and len(watched) == 1):
                raise Problem(str(reason)) from None
            lost = lost if isinstance(reason, Gone) else str(reason)
        if now is None or (earlier is not None and earlier.started != now.started):  # or another process with the same number
            print(f"numalloc: {lost}", file=sys.stderr)
            del watched[pid]
            continue
        watched[pid] = now
        found.append((now, earlier))
    return found
