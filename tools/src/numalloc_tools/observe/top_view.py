"""The processes as a table that fits the terminal."""

from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from numalloc_tools.machine.words import printable
from numalloc_tools.observe.detail import detail
from numalloc_tools.observe.model import Moment
from numalloc_tools.observe.rates import Rates
from numalloc_tools.observe.remote import RemoteShare, remote_share
from numalloc_tools.observe.words import count, percent, size, things

_BARS = " ▁▂▃▄▅▆▇█"
_DIGITS = " 123456789"
_HINT = "q quit   sort by: m memory  c CPU  r remote  f faults"
_FRAME = 4  # lines around the rows
_LAST = ("remote", "estimate", "swapped", "faults/s")
_LEFT_OUT = ("swapped", "estimate", "huge", "faults/s", "CPUs", "threads")  # in this order, where a terminal is too narrow
_LONGEST_NAME = 16
_GAP = 2  # between columns


@dataclass(frozen=True)
class Row:
    moment: Moment
    earlier: Moment | None
    rates: Rates | None

    @property
    def remote(self) -> RemoteShare | None:
        return remote_share(self.moment, self.earlier)


ORDERS = {
    "memory": lambda row: row.moment.memory.resident,
    "cpu": lambda row: row.rates.cpus if row.rates else row.moment.cpu_seconds,
    "remote": lambda row: row.remote.alike if row.remote else -1.0,
    "faults": lambda row: row.rates.minor_faults + row.rates.major_faults if row.rates else row.moment.minor_faults,
}
KEYS = {name[0]: name for name in ORDERS}


def ordered(rows: list[Row], order: str) -> list[Row]:
    return sorted(rows, key=ORDERS[order], reverse=True)


def view(rows: list[Row], order: str, nodes: tuple[int, ...], console: Console, live: bool) -> RenderableType:
    if len(rows) == 1:
        body = detail(rows[0].moment, rows[0].earlier, rows[0].rates, console.width)
        return Group(Text("q quit", style="dim"), body) if live else body
    room = max(1, console.size.height - _FRAME) if live else len(rows)
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold")
    titles = ["PID", "program", "malloc", "threads", "CPUs", "memory", "huge", _nodes_title(nodes), *_LAST]
    cells = [_cells(row, nodes, console) for row in ordered(rows, order)[:room]]
    shown = _fitting(titles, cells, console.width)
    for number in shown:
        name = titles[number]
        table.add_column(name, justify="left" if name in ("program", "malloc", _nodes_title(nodes)) else "right", no_wrap=True)
    for row in cells:
        table.add_row(*(row[number] for number in shown))
    title = f"{len(rows)} {'process' if len(rows) == 1 else 'processes'} by {order}, {things(len(nodes), 'node')}"
    return Group(Text(title), table, Text(_HINT, style="dim")) if live else Group(Text(title), table)


def _fitting(titles: list[str], cells: list[list[str | Text]], room: int) -> list[int]:
    """The columns that fit in a row of `room`, by their numbers."""
    widths = [max(len(name), *(len(row[number]) for row in cells), 0) + _GAP for number, name in enumerate(titles)]
    shown = list(range(len(titles)))
    for name in _LEFT_OUT:
        if sum(widths[number] for number in shown) <= room + _GAP:
            break
        shown.remove(titles.index(name))
    return shown


def _cells(row: Row, nodes: tuple[int, ...], console: Console) -> list[str | Text]:
    moment, remote = row.moment, row.remote
    return [
        str(moment.pid),
        Text(printable(moment.name)[:_LONGEST_NAME]),
        moment.malloc or "-",
        str(len(moment.threads)),
        f"{row.rates.cpus:.2f}" if row.rates else "-",
        size(moment.memory.resident),
        percent(moment.memory.huge_share),
        Text(spread(moment, nodes, "utf" in console.encoding.lower())),
        percent(remote.least if remote else None),
        percent(remote.alike if remote else None),
        size(moment.memory.swapped),
        count(row.rates.minor_faults + row.rates.major_faults) if row.rates else "-",
    ]


def spread(moment: Moment, nodes: tuple[int, ...], blocks: bool) -> str:
    """A bar for each node: the process's memory there, relative to its fullest node."""
    if moment.nodes is None:
        return "-"
    signs = _BARS if blocks else _DIGITS
    held = [moment.nodes[node].own if node in moment.nodes else 0 for node in nodes]
    most = max(held) or 1
    return "".join(signs[-(-amount * (len(signs) - 1) // most)] for amount in held)


def _nodes_title(nodes: tuple[int, ...]) -> str:
    return "node" if len(nodes) == 1 else f"nodes {nodes[0]}-{nodes[-1]}"
