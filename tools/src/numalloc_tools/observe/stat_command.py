"""`numalloc stat PID`: shows one process, once or repeatedly."""

import sys
import time
from typing import Annotated, Optional

import typer

from numalloc_tools.checks import require_least
from numalloc_tools.machine.online import machine
from numalloc_tools.observe import output, page, process
from numalloc_tools.observe.as_json import as_json
from numalloc_tools.observe.detail import detail
from numalloc_tools.observe.model import Moment
from numalloc_tools.observe.process import Gone, Unseen
from numalloc_tools.observe.rates import rates
from numalloc_tools.observe.selection import pid_of
from numalloc_tools.problem import Problem


def stat(
    pid: Annotated[str, typer.Argument(help="The number of the process.", metavar="PID", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each sample.")] = False,
    watch: Annotated[
        Optional[float],
        typer.Option(help="Repeat every SECONDS until the process ends, and show rates per second.", metavar="SECONDS"),
    ] = None,
    times: Annotated[Optional[int], typer.Option("--count", help="With --watch: the number of samples.", metavar="N")] = None,
) -> None:
    """Show where the memory and the threads of a process are, and the statistics of the library in it.

    Works for any program. The library's statistics need NUMALLOC_STATISTICS_PAGE=1 at the program's start. With
    --watch, the exit status is 0 when the process ends.
    """
    number = pid_of(pid)
    if watch is not None:
        output.seconds_of(watch, "--watch")
    elif times is not None:
        raise Problem("--count: has no effect without --watch; accepted: together with --watch SECONDS")
    require_least(times, "--count")
    here = machine()
    page.remove_stale()
    console = output.console()
    earlier: Moment | None = None
    looked = 0
    while True:
        due = time.monotonic() + (watch or 0)
        try:
            now = process.moment(number, here)
        except Unseen as reason:
            if earlier is None or not isinstance(reason, Gone):
                raise Problem(str(reason)) from None
            return _ended(number)
        if earlier is not None and earlier.started != now.started:  # another process with the same number
            return _ended(number)
        happened = rates(earlier, now) if earlier else None
        if json:
            output.line_of_json(as_json(now, earlier, happened))
        else:
            output.show(console, detail(now, earlier, happened, console.width), again=looked > 0)
        looked += 1
        if watch is None or looked == times:
            return
        earlier = now
        time.sleep(max(0.0, due - time.monotonic()))


def _ended(pid: int) -> None:
    print(f"numalloc: process {pid} has ended", file=sys.stderr)
