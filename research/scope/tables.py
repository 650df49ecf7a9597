"""The counts and the modelled time on a terminal."""

from collections.abc import Callable

from numalloc_tools.symbols import demangled
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from research.scope.model import PARTS
from research.scope.results import Results, Run, summary

HOTTEST = 8  # symbols and lines that a terminal shows
WIDTH = 110
_FRAMES = 5  # of a stack that a terminal shows, the innermost
LONGEST = 60  # letters of a symbol: those of templates have hundreds
_LINES = ("", "modelled time", "x 0.5, x 2", "memory lines", "remote", "of all", "fullest node", "most work")
_ELSE = (
    "",
    "instructions",
    "lines of other caches",
    "of other nodes",
    "false sharing",
    "TLB misses",
)
_ALLOCATOR = ("", "instructions", "remote lines", "of objects", "of its own data", "kernel's instructions", "its remote lines")
LEGEND = (
    "Lines of 64 bytes; fullest node and most work: of a node, to the mean of all (1 is even). Times are "
    "modelled; x 0.5, x 2: with the latencies of memory and other caches halved and doubled. "
    "A small remote share proves nothing without the lines in all, the balance and the time."
)


def number(value: float) -> str:
    return _with_unit(value, (("G", 1e9), ("M", 1e6), ("k", 1e3)), 1, "")


def time(seconds: float) -> str:
    return _with_unit(seconds, (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)), 1e-9, " ns")


def _with_unit(value: float, units: tuple, smallest: float, its_name: str) -> str:
    """Three digits that count."""
    rounded = float(f"{value:.3g}")
    for unit, size in units:
        if rounded >= size * 0.9999999:
            return f"{float(f'{rounded / size:.3g}'):.15g} {unit}"
    return f"{float(f'{rounded / smallest:.3g}'):.15g}{its_name}"


def lines_of(run: Run) -> list[str]:
    """A row of the first table: what is remote stands among what it has to be read with."""
    scope = run.scope
    low, high = run.modelled.range
    return [
        run.name,
        time(run.modelled.seconds),
        f"{time(low)}, {time(high)}",
        number(scope.fills),
        number(scope.remote_fills),
        f"{100 * scope.remote_share:.3g} %",
        f"{scope.balance:.2f}",
        f"{scope.work_balance:.2f}",
    ]


def number_or_dash(value: float | None) -> str:
    """ "-" for what was not asked for."""
    return "-" if value is None else number(value)


def numbers_of(*names: str) -> Callable[[Run], list[str]]:
    """A row of these numbers."""

    def row(run: Run) -> list[str]:
        found = summary(run)
        return [run.name, *(number_or_dash(found[name]) for name in names)]

    return row


else_of = numbers_of("instructions", "other_caches_lines", "remote_caches_lines", "false_sharing", "tlb_misses")
allocator_of = numbers_of(
    "allocator_instructions",
    "allocator_remote_lines",
    "allocator_remote_lines_on_objects",
    "allocator_remote_lines_on_own",
    "kernel_instructions",
    "kernel_remote_lines",
)


def parts_of(run: Run) -> list[str]:
    return [run.name, run.modelled.longest, *(time(run.modelled.parts[part]) for part in PARTS)]


# Heading, columns, a row of a run.
TABLES = (
    ("Counted, and the time modelled", _LINES, lines_of),
    ("What else was counted", _ELSE, else_of),
    ("The allocator's own code, and the kernel's: lines of other nodes' memory and caches", _ALLOCATOR, allocator_of),
    ("Modelled time of the longest CPU or thread, by what it is spent on", ("", "longest", *PARTS), parts_of),
)


def show(terminal: Console, results: Results) -> None:
    terminal.print(f"{results.hardware.title}, modelled", highlight=False)
    for heading, columns, row_of in TABLES:
        table = made(heading, columns)
        for run in results.good:
            table.add_row(*row_of(run))
        terminal.print(table)
    terminal.print(LEGEND, highlight=False)
    if len(results.most_threads) > 1:
        holds = "holds" if results.order_holds() else "does not hold"
        terminal.print(f"The order of the allocators {holds} when latencies of memory and other caches are halved and doubled.")
    for run in results.most_threads:
        _hottest(terminal, run)
    for run in results.runs:
        if run.reason:
            terminal.print(f"{run.name}: {run.reason}", markup=False, highlight=False)


def _hottest(terminal: Console, run: Run) -> None:
    symbols = [one for one in hottest_symbols(run) if one[2] + one[3]][:HOTTEST]
    if symbols:
        table = made(f"{run.name}: whose code fetches lines from other nodes", ("symbol", "object", "of memory", "of caches"))
        for object_, symbol, fills, transfers in symbols:
            table.add_row(escape(symbol[:LONGEST]), escape(object_), number(fills), number(transfers))
        terminal.print(table)
    if stacks := run.raw.get("stacks", [])[:HOTTEST]:
        table = made(f"{run.name}: stacks that fetch lines from other nodes (sampled)", ("of memory", "of caches", "stack"))
        for one in stacks:
            inner = [escape(frame[:LONGEST]) for frame in one["frames"][:_FRAMES]]
            table.add_row(number(one["fills"]), number(one["transfers"]), "\n".join(inner))
        table.columns[-1].justify = "left"
        terminal.print(table)
    if shared := run.raw["false_sharing"][:HOTTEST]:
        table = made(f"{run.name}: two addresses, one line (false sharing)", ("first", "second", "nodes", "times"))
        for one in shared:
            first, its, second, other, *rest = sharing_of(one)
            table.add_row(f"{first}\n{escape(its)}", f"{second}\n{escape(other)}", *rest)
        terminal.print(table)


def sharing_of(line: dict) -> list[str]:
    """Both addresses of a falsely shared line with what is there, the nodes, and how often."""
    first, second = map(owner, line["class"] or (None, None))
    return [line["first"], first, line["second"], second, ", ".join(map(str, line["nodes"])), number(line["times"])]


def owner(what: dict | None) -> str:
    """What is at an address: a byte of an object, or else the part of memory that it is in."""
    if what is None:
        return "-"
    if "in" in what:
        return f"no object; {what['in']}"
    return f"{'freed ' if what['freed'] else ''}{what['size']} B + {what['offset']}, thread {what['thread']}"


def hottest_symbols(run: Run) -> list[tuple[str, str, float, float]]:
    """Object, symbol, lines of other nodes' memory and caches; the most first."""
    names = demangled({one["symbol"] for one in run.raw["symbols"]})
    found = [
        (one["object"], names.get(one["symbol"], one["symbol"]), one["remote_fills"], one["remote_transfers"]) for one in run.raw["symbols"]
    ]
    return sorted(found, key=lambda one: -(one[2] + one[3]))


def made(title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 0, 0, 1))
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", no_wrap=not place)
    return table
