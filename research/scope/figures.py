"""The paper's figures 4 to 8 and the study's table 2 in Markdown, from what was counted and modelled."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from textwrap import TextWrapper

from numalloc_tools.allocators import BASELINE, BOUND, OURS, shown

from research.scope import host, tables
from research.scope.host import Beside
from research.scope.results import Results, Run
from research.scope.scenarios import BALANCE_PROMISED, PROMISED, REMOTE_PROMISED

_WIDTH = 99
TIMES, BINDING, MECHANISMS, SPEEDUP = "Modelled time, over", "Modelled time with bound", "numalloc with a", "Modelled speedup"
Found = dict[str, Results]  # by scenario


@dataclass(frozen=True)
class Around:
    """What stands in the text besides what was counted."""

    made: str = ""  # by what, and of which library
    notes: str = ""  # Markdown: remarks on what is not as it should be
    hosted: dict[str, list[Beside]] = field(default_factory=dict)  # by scenario
    pictures: dict[str, str] = field(default_factory=dict)  # files beside the text, by the heading that they belong to


def markdown(found: Found, swept: Found, machine: str, around: Around = Around()) -> str:
    parts = [
        "# Figures of research scope",
        around.made,
        f"Counted in the emulator, on the model of {machine}. Every time is modelled, not measured. A small remote share proves "
        "nothing without the lines in all, the balance and the time: they stand beside it.",
        around.notes.strip(),
        *_promises(found),
        *_times(found),
        *_lines(found),
        *_binding(found),
        *_mechanisms(found),
        *_speedups(swept),
        *_study(found),
        *_hosted(around.hosted),
    ]
    notes = around.notes.strip()
    prose = TextWrapper(_WIDTH, break_on_hyphens=False)
    parts = [part if part == notes or part.startswith(("|", "#")) else prose.fill(part) for part in parts if part]
    for heading, file in around.pictures.items():
        place = next((number for number, part in enumerate(parts) if part.startswith(f"## {heading}")), None)
        if place is not None:
            parts.insert(place + 1, f"![{heading}]({file})")
    return "\n\n".join(parts) + "\n"


def table(headings: list[str], rows: list[list[str]]) -> str:
    return "\n".join(["| " + " | ".join(row) + " |" for row in (headings, ["---"] * len(headings), *rows)])


def mean(values: list[float]) -> float:
    """Geometric."""
    return math.exp(sum(map(math.log, values)) / len(values))


def _plain(found: Found) -> list[str]:
    """Allocators as they come, in the order in which they were run."""
    names = dict.fromkeys(run.allocator for results in found.values() for run in results.good)
    return [name for name in names if ":" not in name and not name.endswith(BOUND)]


def _run(results: Results, name: str) -> Run | None:
    return next((run for run in results.good if run.allocator == name), None)


def _promises(found: Found) -> list[str]:
    """What numalloc keeps, and by name what it does not."""
    rows, missed = [], []
    for name in PROMISED:
        run = _run(found[name], OURS) if name in found else None
        if run is None:
            continue
        share, balance = run.scope.remote_share, run.scope.balance
        kept = share < REMOTE_PROMISED and balance <= BALANCE_PROMISED
        rows.append(
            [
                name,
                tables.number(run.scope.fills),
                f"{100 * share:.2f} %",
                f"{balance:.2f}",
                f"{run.scope.work_balance:.2f}",
                tables.time(run.modelled.seconds),
                "yes" if kept else "no",
            ]
        )
        if not kept:
            missed.append(name)
    if not rows:
        return []
    heading = "## What is promised of numalloc\n\nLess than 1 % of memory lines remote, the fullest node at most 1.2 times the mean."
    said = f"Not kept: {', '.join(missed)}." if missed else "Kept in all of them."
    return [
        heading,
        table(["program", "memory lines", "remote", "fullest node", "most work", "modelled time", "kept"], rows),
        said,
    ]


def _ratios(found: Found, value: Callable[[Run], float], base: str, names: list[str]) -> tuple[list[list[str]], dict[str, float]]:
    """A row a program, each allocator's value over that of `base`; and the means over programs that have all of them."""
    rows = []
    columns: dict[str, list[float]] = {name: [] for name in names}
    for scenario, results in found.items():
        runs = {name: _run(results, name) for name in names}
        under = value(run) if (run := runs.get(base)) else 0.0
        cells = {name: value(run) / under if run and under else None for name, run in runs.items()}
        rows.append([scenario, *("-" if cell is None else f"{cell:.2f}" for cell in cells.values())])
        whole = {name: cell for name, cell in cells.items() if cell}
        if len(whole) == len(cells):
            for name, cell in whole.items():
                columns[name].append(cell)
    means = {name: mean(values) for name, values in columns.items() if values}
    if means:
        count = len(next(iter(columns.values())))
        rows.append([f"geometric mean of {count}", *(f"{means[name]:.2f}" for name in names)])
    return rows, means


def _times(found: Found) -> list[str]:
    names = _plain(found)
    if BASELINE not in names or len(names) < 2:
        return []
    rows, means = _ratios(found, lambda run: run.modelled.seconds, BASELINE, names)
    parts = [f"## {TIMES} {BASELINE}'s (figure 3, and the black line of figure 4)", table(["program", *names], rows)]
    if OURS in means:
        behind = [name for name in names if name != OURS and means[name] < means[OURS]]
        parts.append(
            f"In the geometric mean numalloc is behind {', '.join(behind)}." if behind else "In the geometric mean numalloc is first."
        )
        slower = []
        for scenario, results in found.items():
            runs = [run for name in names if (run := _run(results, name))]
            best = min(runs, key=lambda run: run.modelled.seconds, default=None)
            if best and best.allocator != OURS and (ours := _run(results, OURS)):
                slower.append(f"{scenario} ({best.allocator} takes {best.modelled.seconds / ours.modelled.seconds:.2f} of it)")
        if slower:
            parts.append(f"Another one is faster in: {', '.join(slower)}.")
    return parts


def _lines(found: Found) -> list[str]:
    """Everything that a remote share has to be read with, a row an allocator and program."""
    names = _plain(found)
    rows = []
    for scenario, results in found.items():
        for name in names:
            if (run := _run(results, name)) is None:
                continue
            rows.append(
                [
                    scenario,
                    *tables.lines_of(run),
                    tables.number(run.scope.remote_transfers),
                    tables.number_or_dash(run.scope.tlb_misses),
                    tables.number_or_dash(run.scope.remote_lines_of("allocator")),
                ]
            )
    headings = [
        "program",
        "allocator",
        "modelled time",
        "x 0.5, x 2",
        "memory lines",
        "remote",
        "of all",
        "fullest node",
        "most work",
        "lines of other nodes' caches",
        "TLB misses",
        "allocator's own remote lines",
    ]
    return ["## Remote lines and TLB misses (figure 4)", table(headings, rows)] if rows else []


def times(found: Found) -> dict[str, dict[str, float]]:
    """Modelled times over the baseline's: by allocator, by program."""
    return {
        name: {
            scenario: run.modelled.seconds / base.modelled.seconds
            for scenario, results in found.items()
            if (run := _run(results, name)) and (base := _run(results, BASELINE))
        }
        for name in _plain(found)
    }


def binding(found: Found) -> dict[str, dict[str, float]]:
    """Modelled times with bound threads over those without: by allocator, by program."""
    ratios = {
        name: {
            scenario: bound.modelled.seconds / free.modelled.seconds
            for scenario, results in found.items()
            if (free := _run(results, name)) and (bound := _run(results, name + BOUND))
        }
        for name in _plain(found)
    }
    return {name: by_program for name, by_program in ratios.items() if by_program}


def mechanisms(found: Found) -> dict[str, dict[str, float]]:
    """numalloc's modelled times with one mechanism changed over those as it comes: by the change, by program."""
    names = dict.fromkeys(run.allocator for results in found.values() for run in results.good)
    return {
        shown(name): {
            scenario: run.modelled.seconds / base.modelled.seconds
            for scenario, results in found.items()
            if (run := _run(results, name)) and (base := _run(results, OURS))
        }
        for name in names
        if name.startswith(f"{OURS}:")
    }


def _by_program(ratios: dict[str, dict[str, float]]) -> str:
    """A row for each program that has one of them."""
    programs = dict.fromkeys(program for by_program in ratios.values() for program in by_program)
    rows = [[program, *(f"{one[program]:.2f}" if program in one else "-" for one in ratios.values())] for program in programs]
    return table(["program", *ratios], rows)


def _binding(found: Found) -> list[str]:
    ratios = binding(found)
    return [f"## {BINDING} threads, over without (figure 6a)", _by_program(ratios)] if ratios else []


def _mechanisms(found: Found) -> list[str]:
    """A row for each change: there are more of them than programs."""
    ratios = mechanisms(found)
    if not any(ratios.values()):
        return []
    programs = list(dict.fromkeys(program for one in ratios.values() for program in one))
    rows = [[name, *(f"{one[program]:.2f}" if program in one else "-" for program in programs)] for name, one in ratios.items()]
    heading = f"## {MECHANISMS} mechanism off or changed, over numalloc (figures 6b, 7 and 8)"
    return [heading, "Modelled time. Above 1 the mechanism pays.", table(["", *programs], rows)]


def _speedups(swept: Found) -> list[str]:
    parts = []
    for scenario, results in swept.items():
        numbers = sorted({run.threads for run in results.good})
        at = {(run.allocator, run.threads): run.modelled.seconds for run in results.good}
        base = at.get((BASELINE, numbers[0])) if numbers else None
        if not base:
            continue
        names = dict.fromkeys(name for name, _ in at)
        rows = [[name, *(f"{base / at[name, one]:.1f}" if (name, one) in at else "-" for one in numbers)] for name in names]
        parts.append(table([scenario, *(f"{one} threads" for one in numbers)], rows))
    return [f"## {SPEEDUP}, over {BASELINE} with the fewest threads (figure 5)", *parts] if parts else []


def _study(found: Found) -> list[str]:
    """Table 2 of the study: the same program with threads where the kernel likes, and bound sparsely."""
    runs = {name: _run(found["hash-maps"], name) for name in (BASELINE, BASELINE + BOUND)} if "hash-maps" in found else {}
    scopes = [run.scope for run in runs.values() if run]
    if len(scopes) < 2:
        return []
    free, bound = scopes
    rows = []
    for what, value in (
        ("cache misses", lambda one: one.fills + one.transfers),
        ("local memory access", lambda one: one.fills - one.remote_fills),
        ("remote memory access", lambda one: one.remote_fills),
    ):
        before, after = value(free), value(bound)
        change = f"{100 * (after / before - 1):+.1f} %" if before else "-"
        rows.append([what, tables.number(before), tables.number(after), change])
    rows.append(["local access ratio", f"{1 - free.remote_share:.2f}", f"{1 - bound.remote_share:.2f}", ""])
    rows.append(["fullest node / mean", f"{free.balance:.2f}", f"{bound.balance:.2f}", ""])
    heading = f"## hash-maps under {BASELINE}: threads where the kernel likes, and bound (the study's table 2)"
    return [heading, table(["", "free", "bound", "difference"], rows)]


def _hosted(hosted: dict[str, list[Beside]]) -> list[str]:
    """The model's order of the allocators against this machine's own."""
    if not hosted:
        return []
    rows, said = [], []
    for scenario, found in hosted.items():
        for one in sorted(found, key=lambda one: one.modelled):
            rows.append(
                [
                    scenario,
                    one.allocator,
                    tables.number(one.counted),
                    tables.time(one.modelled),
                    tables.time(one.user),
                    tables.time(one.system),
                    f"{100 * one.spread:.0f} %",
                ]
            )
        if len(found) > 1:
            user, both = host.agreement(found, lambda one: one.user), host.agreement(found, lambda one: one.user + one.system)
            said.append(f"{scenario} {user:.2f} ({both:.2f} with the system's)")
    headings = ["program", "allocator", "instructions", "modelled, one node", "user time here", "system time here", "+-"]
    parts = ["## The model beside this machine", table(headings, rows)]
    if said:
        parts.append(
            "How the orders by modelled and by measured user time agree (Kendall's tau: 1 the same, 0 unrelated, -1 "
            f"reversed): {', '.join(said)}. Processor time of whole runs, medians of interleaved rounds; +-: half the range of "
            "user and system time together over their median."
        )
    return parts
