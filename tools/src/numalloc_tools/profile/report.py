"""A profile as tables for people, or as JSON for programs."""

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from numalloc_tools.profile import totals
from numalloc_tools.profile.samples import Sample, View

STACK_SHOWN = 8  # frames of a stack
_CERTAINTY = ("records", "error")


def size(amount: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def shortened(name: str) -> str:
    """A C++ function's name without arguments and template arguments: std::vector<>::vector."""
    if name.startswith("("):
        return name
    short, depth = "", 0
    for place, letter in enumerate(name):
        if letter == "<" and not short.endswith("operator") and not short.endswith("operator<"):
            depth += 1
            short += "<>" if depth == 1 else ""
        elif letter == ">" and depth:
            depth -= 1
        elif letter == "(" and not depth and not short.endswith("operator") and not name.startswith("(anonymous", place):
            break
        elif not depth:
            short += letter
    return short.strip() or name


def as_data(samples: list[Sample], view: View, rows: int, notes: list[str]) -> dict:
    whole = totals.total(samples)
    return {
        "view": view.name,
        "bytes": whole.flat.bytes,
        "objects": whole.flat.objects,
        **_certainty("", whole.flat),
        "notes": notes,
        "remote_pages_bytes": whole.remote_pages,
        "remote_free_bytes": whole.remote_free,
        "functions": [_row({"function": name}, share) for name, share in totals.by_function(samples)[:rows]],
        "stacks": [_row({"stack": list(stack)}, share) for stack, share in totals.by_stack(samples)[:rows]],
        "places": [
            _row({"allocated_on": thread, "pages_on": pages, "freed_on": freed or None}, share)
            for (thread, pages, freed), share in totals.by_place(samples)
        ],
        "remote_stacks": [_row({"stack": list(stack)}, share) for stack, share in totals.remote_stacks(samples)[:rows]],
    }


def _row(what: dict, share: totals.Share) -> dict:
    return what | {
        "flat_bytes": share.flat.bytes,
        "flat_objects": share.flat.objects,
        **_certainty("flat_", share.flat),
        "cumulative_bytes": share.cumulative.bytes,
        "remote_pages_bytes": share.remote_pages,
        "remote_free_bytes": share.remote_free,
    }


def _certainty(before: str, amount: totals.Amount) -> dict:
    """Null if every allocation was recorded, or if the file does not tell."""
    sampled = amount.variance > 0
    return {f"{before}records": _records(amount) if sampled else None, f"{before}error": round(amount.error, 4) if sampled else None}


def print_report(terminal: Console, samples: list[Sample], view: View, by: str, rows: int, notes: list[str]) -> None:
    whole = totals.total(samples)
    records = f" (±{percent(whole.flat.error)}, by about {_records(whole.flat)} records)" if whole.flat.variance else ""
    terminal.print(f"[bold]{size(whole.flat.bytes)}[/bold] in {whole.flat.objects} objects{records}: {view.title}", highlight=False)
    for note in notes:
        terminal.print(note, highlight=False, markup=False, soft_wrap=True)
    if not samples:
        return
    terminal.print({"function": _functions, "stack": _stacks, "place": _places}[by](samples, whole, rows))
    far = totals.remote_stacks(samples)
    if far:
        terminal.print(f"[bold]{size(whole.remote_pages)}[/bold] are on another node than the thread that allocated them:", highlight=False)
        terminal.print(_stack_table(far[:rows], whole))


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=False)
    for column in columns:
        words = column in ("function", "stack, the caller of malloc first")
        table.add_column(column, justify="left" if words else "right", overflow="fold" if words else "ellipsis", no_wrap=not words)
    return table


def _sampled(whole: totals.Share, *cells: str) -> tuple[str, ...]:
    """The cells of the columns that only a sampled profile has."""
    return cells if whole.flat.variance else ()


def _records(amount: totals.Amount) -> int:
    return max(1, round(amount.records)) if amount.records else 0


def _shown(amount: totals.Amount) -> tuple[str, str]:
    return str(_records(amount)), f"±{percent(amount.error)}" if amount.bytes else "-"


def _part(amount: int, whole: totals.Share) -> str:
    return percent(amount / whole.flat.bytes if whole.flat.bytes else 0)


def _functions(samples: list[Sample], whole: totals.Share, rows: int) -> Table:
    remote = [
        (title, part)
        for title, amount, part in (
            ("remote", whole.remote_pages, lambda share: share.remote_part),
            ("freed remotely", whole.remote_free, lambda share: share.freed_remotely_part),
        )
        if amount
    ]
    columns = ("flat", "flat %", "with callees", "%", "objects", *_sampled(whole, *_CERTAINTY), *(title for title, _ in remote), "function")
    table = _table(*columns)
    for name, share in totals.by_function(samples)[:rows]:
        table.add_row(
            size(share.flat.bytes),
            _part(share.flat.bytes, whole),
            size(share.cumulative.bytes),
            _part(share.cumulative.bytes, whole),
            str(share.flat.objects),
            *_sampled(whole, *_shown(share.flat)),
            *(percent(part(share)) for _, part in remote),
            escape(shortened(name)),
        )
    return table


def _stacks(samples: list[Sample], whole: totals.Share, rows: int) -> Table:
    return _stack_table(totals.by_stack(samples)[:rows], whole)


def _stack_table(stacks: list[tuple[tuple[str, ...], totals.Share]], whole: totals.Share) -> Table:
    table = _table("bytes", "%", "objects", *_sampled(whole, *_CERTAINTY), "remote", "stack, the caller of malloc first")
    for stack, share in stacks:
        shown = "\n".join(shortened(name) for name in stack[:STACK_SHOWN]) + (
            f"\n... {len(stack) - STACK_SHOWN} more" if len(stack) > STACK_SHOWN else ""
        )
        table.add_row(
            size(share.flat.bytes),
            _part(share.flat.bytes, whole),
            str(share.flat.objects),
            *_sampled(whole, *_shown(share.flat)),
            percent(share.remote_part),
            escape(shown),
        )
    return table


def _places(samples: list[Sample], whole: totals.Share, rows: int) -> Table:
    table = _table("thread's node", "pages on", "freed on", "bytes", "%", "objects", *_sampled(whole, *_CERTAINTY))
    for (thread, pages, freed), share in totals.by_place(samples)[:rows]:
        table.add_row(
            escape(thread),
            escape(pages),
            escape(freed) or "-",
            size(share.flat.bytes),
            _part(share.flat.bytes, whole),
            str(share.flat.objects),
            *_sampled(whole, *_shown(share.flat)),
        )
    return table
