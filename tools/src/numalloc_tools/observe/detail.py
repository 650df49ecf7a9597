"""All figures of one process, as text, for `stat` and for `top` of a single process."""

import errno

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numalloc_tools import statistics_table as table_of
from numalloc_tools.machine.words import printable
from numalloc_tools.observe.model import INTERLEAVED, ClassRecord, Moment, Page
from numalloc_tools.observe.rates import Rates
from numalloc_tools.observe.remote import node_seconds, remote_share
from numalloc_tools.observe.words import count, duration, figure, percent, size, things

_COLUMN = 12  # columns per node; without room for all nodes, the smallest and largest value are shown
_OTHER_COLUMNS = 42
_MOST_CLASSES = 12
_MOST_POLICIES = 4


def detail(moment: Moment, earlier: Moment | None, rates: Rates | None, width: int) -> RenderableType:
    parts: list[RenderableType] = [_facts(moment, earlier, rates), _nodes(moment, earlier, rates)]
    if moment.page:
        parts += [_library(moment.page, moment.at, rates, (width - _OTHER_COLUMNS) // _COLUMN), _classes(moment.page)]
    return Group(*parts)


def _facts(moment: Moment, earlier: Moment | None, rates: Rates | None) -> RenderableType:
    memory = moment.memory
    head = f"{printable(moment.name)}, process {moment.pid}: {things(len(moment.threads), 'thread')}, {duration(moment.age)} old"
    if moment.page:
        head += ", under numalloc"
    elif moment.under_numalloc:
        head += ", under numalloc without a page of statistics of this version (NUMALLOC_STATISTICS_PAGE=1)"
    elif moment.malloc:
        head += f", {moment.malloc} is loaded"
    rows = [
        (
            "resident",
            f"{size(memory.resident)} (peak {size(memory.peak)}): anonymous {size(memory.anonymous)}, "
            f"files {size(memory.files)}, shared {size(memory.shared)}; swapped out {size(memory.swapped)}",
        ),
        ("huge pages", f"{percent(memory.huge_share)} of anonymous and shared memory"),
        ("remote", _remote(moment, earlier)),
        ("policies", _policies(moment)),
    ]
    if moment.page:
        rows.append(("heap", _heap(moment.page)))
        if refused := _refused(moment.page):
            rows.append(("refused", refused))
    if rates:
        events = _events(rates.minor_faults, rates.major_faults, rates.migrations)
        rows.append(("a second", f"{events}; {rates.cpus:.2f} CPUs busy"))
    else:
        events = _events(moment.minor_faults, moment.major_faults, moment.migrations)
        rows.append(("so far", f"{events}; {moment.cpu_seconds:.2f} s of CPU time"))
    grid = Table.grid(padding=(0, 2))
    for name, text in rows:
        grid.add_row(f"  {name}", Text(text))
    return Group(Text(head, style="bold"), grid)


def _events(minor: float, major: float, moves: float | None) -> str:
    text = f"{count(minor)} minor and {count(major)} major page faults"
    return text if moves is None else f"{text}, {count(moves)} moves of threads from CPU to CPU"


def _heap(page: Page) -> str:
    if not page.nodes:
        return "no statistics yet: the library writes them while the program allocates"

    def of(*names: str) -> int:
        return sum(record.values.get(name, 0) for record in page.nodes for name in names)

    text = f"{size(of('small_live', 'big_bytes', 'heap_bytes'))} live, "
    text += f"{size(of('small_lists', 'small_homeward', 'small_ring'))} free in lists, "
    text += f"{size(of('dirty_bytes'))} free but not yet returned to the OS"
    fetched = of("fetched_objects")
    share = min(1.0, of("remote_frees") / fetched) if fetched else 0.0
    return f"{text}; remote frees are {percent(share)} of the fetched objects"


def _refused(page: Page) -> str:
    """The library's system calls that the kernel refused, and the reasons."""
    found = []
    for name, times in page.process.items():
        if name.startswith("refused_") and not name.endswith("_error") and times:
            number = page.process.get(f"{name}_error", 0)
            why = errno.errorcode.get(number, f"error {number}")
            found.append(f"{name.removeprefix('refused_').replace('_', ' ')} {count(times)} times ({why})")
    return ", ".join(found)


def _remote(moment: Moment, earlier: Moment | None) -> str:
    share = remote_share(moment, earlier)
    if share is None:
        return "unknown: this kernel does not tell where memory is"
    text = f"at least {percent(share.least)} (on nodes without a thread)"
    return f"{text}; {percent(share.alike)} if all threads used all memory equally (estimate)"


def _policies(moment: Moment) -> str:
    policies = [f"{policy} {size(held)}" for policy, held in moment.policies.items()]
    more = len(policies) - _MOST_POLICIES
    return ", ".join(policies[:_MOST_POLICIES]) + (f", and {things(more, 'other')}" if more > 0 else "") or "-"


def _nodes(moment: Moment, earlier: Moment | None, rates: Rates | None) -> RenderableType:
    table = Table(box=SIMPLE, pad_edge=False)
    for name in ("node", "own memory", "share", "files", "off policy", "threads", "CPUs busy" if rates else "CPU time, s"):
        table.add_column(name, justify="right", no_wrap=True)
    held = moment.nodes or {}
    total = sum(one.own for one in held.values())
    seconds = rates.node_cpus if rates else node_seconds(moment, earlier)
    for node in moment.shown_nodes:
        one = held.get(node)
        table.add_row(
            str(node),
            size(one.own) if one else "-",
            percent(one.own / total) if one and total else "-",
            size(one.files) if one else "-",
            size(one.off_policy) if one else "-",
            str(moment.threads_on.get(node, 0)),
            f"{seconds.get(node, 0.0):.2f}",
        )
    return table


def _library(page: Page, at: float, rates: Rates | None, room: int) -> RenderableType:
    """A line for each statistic: the sum over all nodes, then each node if there is room."""
    nodes = list(page.nodes)
    each = len(nodes) <= room
    table = Table(box=SIMPLE, pad_edge=False, title=f"numalloc, {max(0.0, at - page.updated_at):.1f} s ago", title_justify="left")
    table.add_column("", no_wrap=True)
    columns = ["all nodes"]
    if len(nodes) > 1:
        columns += [_node_name(record.node) for record in nodes] if each else ["least", "most"]
    for name in [*columns, *(["a second"] if rates else [])]:
        table.add_column(name, justify="right", no_wrap=True)
    for name in nodes[0].values if nodes else []:
        known = table_of.statistic(table_of.NODE, name)
        values = [record.values[name] for record in nodes]
        shown = [sum(values)]
        if len(nodes) > 1:
            shown += values if each else [min(values), max(values)]
        row = [figure(value, known.unit) for value in shown]
        if rates:
            change = sum(one.get(name, 0.0) for one in rates.statistics.values())
            row.append(figure(change, known.unit) if known.grows else "")
        table.add_row(Text(name.replace("_", " ")), *row)
    return table


def _node_name(node: int) -> str:
    return "interleaved" if node == INTERLEAVED else f"node {node}"


def _classes(page: Page) -> RenderableType:
    """The classes with the most bytes, summed over all nodes."""
    sums: dict[int, dict[str, int]] = {}
    for record in page.classes:
        one = sums.setdefault(record.size, dict.fromkeys(record.values, 0))
        for name, value in record.values.items():
            one[name] += value
    largest = sorted(sums, key=lambda bytes_each: _held(ClassRecord(0, bytes_each, sums[bytes_each])), reverse=True)
    shown = [one for one in largest if any(sums[one].values())][:_MOST_CLASSES]
    if not shown:
        return Text("no small objects")
    title = f"size classes, the largest {len(shown)} of {len(sums)}"
    table = Table(box=SIMPLE, pad_edge=False, title=title, title_justify="left")
    names = list(sums[shown[0]])
    for name in ("object", "live bytes", "free bytes in lists", *names):
        table.add_column(Text(name), justify="right", no_wrap=True)
    for each in sorted(shown):
        values = sums[each]
        resting = each * (values.get("lists", 0) + values.get("ring", 0))
        table.add_row(size(each), size(each * values.get("live", 0)), size(resting), *(count(values[name]) for name in names))
    return table


def _held(record: ClassRecord) -> int:
    return record.size * sum(record.values.get(name, 0) for name in ("live", "lists", "ring"))
