"""The results as Markdown, to be kept with the sources: summaries, the programs in which numalloc is behind, and every program."""

import math
from textwrap import fill

from numalloc_tools.allocators import OURS, shown
from numalloc_tools.bench.results import CPU, LAB, MEMORY, NOT_RUN, REMOTE, TIME, Cell, Results, Summary
from numalloc_tools.html_page import Drawn

BEHIND = 1.05  # times the best peer's time: programs above it are named
HEAVY = 1.3  # times the smallest of these peers' peaks
WIDTH = 99  # columns of prose, as tests/structure/prose.py requires
LEAN = ("mimalloc3", "mimalloc", "jemalloc-new", "jemalloc")


def markdown(summary: Summary, drawn: list[Drawn], images: str, notes: str = "") -> str:
    """`images`: the path from the text to the folder of the figures. `notes`: remarks on the programs in which numalloc is behind."""
    results = summary.results
    pictures = {one.name: f"![{one.heading}]({images}{one.name}.svg)\n" for one in drawn}
    names = [name for name in results.names if ":" not in name]
    parts = ["# Results\n", _head(results)]
    if results.cases_with(TIME):
        parts += [_means(summary, names), _behind(summary, names), _heavy(summary, names), notes]
        parts += [_threads(summary, names, pictures), _programs(summary, names, TIME, "Time", pictures.get("time", ""))]
        parts += [_programs(summary, names, MEMORY, "Peak resident set", pictures.get("memory", "")), pictures.get("binding", "")]
        parts += [_ablations(summary, pictures)]
    parts += [_remote(summary, pictures), _failures(results), _versions(results)]
    return "\n".join(_wrapped(part) for part in parts if part)


def _wrapped(part: str) -> str:
    return "\n".join(line if line.startswith(("|", "#", "!")) else _filled(line) for line in part.split("\n"))


def _filled(line: str) -> str:
    return fill(line, WIDTH, break_long_words=False, break_on_hyphens=False) if len(line) > WIDTH else line


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _head(results: Results) -> str:
    machine, settings = results.machine, results.settings
    counted: dict[str, set[int]] = {}
    for run in results.runs:
        if run.round > 0:
            counted.setdefault(run.case, set()).add(run.round)
    each = sorted({len(rounds) for rounds in counted.values()}) or [0]
    rounds = _plural(each[-1], "interleaved round") if len(each) == 1 else f"{each[0]} to {each[-1]} interleaved rounds of each program"
    huge = machine["huge_pages"].partition("[")[2].partition("]")[0] or "unknown"
    ours = next((one.get("version") for one in results.allocators if one["name"] == OURS), "") or "an unknown commit"
    return (
        f"Made by `numalloc bench report` of numalloc's sources of {ours}, from a run begun {settings['started']}: {results.seconds / 60:.0f} minutes in all, scale "
        f"{settings['scale']:g}, {rounds}{'' if results.complete else ', interrupted'}.\n"
        f"{machine['processor']}, {_plural(machine['cpus'], 'CPU')}, {machine['memory_bytes'] / 2**30:.0f} GiB, "
        f"{_plural(machine['nodes'], 'memory node')}; {machine['system']}, Linux {machine['kernel']}, {machine['libc']}; huge pages "
        f"by the system: {huge}; load at the start: {machine['load_at_start']:.1f}. Lower is better, except for speedup.\n"
    )


def _means(summary: Summary, names: list[str]) -> str:
    """Each allocator in a few numbers, the fastest first."""
    columns = {}
    for figure in (TIME, CPU, MEMORY):
        cases = summary.completed_by_all(figure, names, summary.results.standard_cases(figure))
        columns[figure] = {name: summary.geometric_mean(name, cases, figure) for name in names}, len(cases)
    order = sorted(names, key=lambda name: columns[TIME][0][name] or math.inf)
    rows = [[_strong(name), *(_number(means[name], name) for means, _ in columns.values())] for name in order]
    head = [
        "allocator",
        *(
            f"{what}, {count} programs"
            for what, (_, count) in zip(("time", "processor time", "peak memory"), columns.values(), strict=True)
        ),
    ]
    return (
        f"## In short\n\nGeometric means relative to {summary.baseline}, over the programs that all allocators "
        f"completed.\n\n{_table(head, rows)}"
    )


def _strong(name: str) -> str:
    return f"**{name}**" if name == OURS else name


def _number(value: float | None, name: str = "") -> str:
    if value is None:
        return "-"
    return f"**{value:.3f}**" if name == OURS else f"{value:.3f}"


def _best(summary: Summary, case: str, names: list[str], figure: str) -> tuple[str, float] | None:
    """The peer with the smallest ratio, and by how much numalloc's is above it."""
    ours = summary.cell(case, OURS, figure).ratio
    peers = {name: cell.ratio for name in names if name != OURS and (cell := summary.cell(case, name, figure)).ratio}
    if not ours or not peers:
        return None
    best = min(peers, key=peers.__getitem__)
    return best, ours / peers[best]


def _against_best(summary: Summary, names: list[str], figure: str, cases: list[str]) -> dict[str, tuple[str, float]]:
    peers = [name for name in names if "+" not in name]
    found = {case: _best(summary, case, peers, figure) for case in cases}
    return {case: best for case, best in found.items() if best}


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _behind(summary: Summary, names: list[str]) -> str:
    against = _against_best(summary, names, TIME, summary.results.cases_with(TIME))
    if not against:
        return ""
    behind = {case: best for case, best in against.items() if best[1] > BEHIND}
    ahead = sum(ratio < 1 for _, ratio in against.values())
    words = (
        f"## Beside the best peer of each program\n\n{OURS} takes {_mean([ratio for _, ratio in against.values()]):.3f} of the best peer's time (geometric "
        f"mean over {_plural(len(against), 'pair')} of program and number of threads): ahead of all in {ahead}, within {100 * BEHIND - 100:.0f} % "
        f"in {len(against) - ahead - len(behind)} more, further behind in {len(behind)}:\n\n"
    )
    rows = []
    for case, (best, ratio) in sorted(behind.items(), key=lambda one: -one[1][1]):
        cpu = _best(summary, case, [OURS, best], CPU)
        rows.append(
            [
                case,
                f"{ratio:.2f}",
                best,
                f"{100 * summary.cell(case, OURS).spread:.0f} %",
                f"{100 * summary.cell(case, best).spread:.0f} %",
                f"{cpu[1]:.2f}" if cpu else "-",
            ]
        )
    if not rows:
        return words.replace(":\n\n", ".\n")
    return words + _table(
        ["program/threads", "time over the best", "best peer", f"spread of {OURS}", "of the peer", "processor time over the same peer's"],
        rows,
    )


def _heavy(summary: Summary, names: list[str]) -> str:
    lean = [name for name in names if name in LEAN]
    against = _against_best(summary, [OURS, *lean], MEMORY, summary.results.cases_with(MEMORY)) if OURS in names else {}
    if not against:
        return ""
    heavy = [[case, f"{ratio:.2f}", best] for case, (best, ratio) in sorted(against.items(), key=lambda one: -one[1][1]) if ratio > HEAVY]
    words = f"Peaks above {HEAVY:g} times the smallest of {', '.join(lean)}: "
    return words + (
        f"{len(heavy)} of {len(against)}.\n\n{_table(['program/threads', 'peak over theirs', 'smallest peer'], heavy)}"
        if heavy
        else f"none of {len(against)}.\n"
    )


def _threads(summary: Summary, names: list[str], pictures: dict[str, str]) -> str:
    """Returns nothing if it would repeat the table above."""
    numbers: dict[str, set[int]] = {}
    timed = set(summary.results.cases_with(TIME))
    for run in summary.results.runs:
        if run.case in timed:
            numbers.setdefault(run.program, set()).add(run.threads)
    several = {program: found for program, found in numbers.items() if len(found) > 1}
    if not several:
        return ""
    rows = []
    for number in sorted(set().union(*several.values())):
        cases = [f"{program}/{number}" for program, found in several.items() if number in found]
        cases = summary.completed_by_all(TIME, names, cases)
        if cases:
            rows.append(
                [f"{number} ({_plural(len(cases), 'program')})", *(_number(summary.geometric_mean(name, cases), name) for name in names)]
            )
    words = f"## By number of threads\n\nGeometric mean of time relative to {summary.baseline} with the same number.\n\n"
    return words + _table(["threads", *map(_strong, names)], rows) + "\n" + pictures.get("speedup", "")


def _programs(summary: Summary, names: list[str], figure: str, heading: str, picture: str) -> str:
    cases = summary.results.cases_with(figure)
    against = _against_best(summary, names, figure, cases) if OURS in names else {}
    show = (lambda value: f"{value:.2f} s") if figure == TIME else (lambda value: f"{value / 2**20:,.0f} MiB")
    rows = []
    for case in cases:
        base = summary.cell(case, summary.baseline, figure)
        others = [_ratio(summary, case, name, figure) for name in names if name != summary.baseline]
        best, ratio = against.get(case, ("", 0.0))
        rows.append([case, show(base.value) if base.ok else base.status, *others, f"{ratio:.2f}" if ratio else "", best])
    head = [
        "program/threads",
        summary.baseline,
        *(_strong(name) for name in names if name != summary.baseline),
        f"{OURS} over the best peer",
        "best peer",
    ]
    words = f"## {heading} by program\n\nMedians; relative to {summary.baseline} where there is no unit.\n"
    return f"{words}\n{picture}\n{_table(head, rows)}"


def _ratio(summary: Summary, case: str, name: str, figure: str) -> str:
    cell = summary.cell(case, name, figure)
    if not cell.ok:
        return "" if cell.status == NOT_RUN else cell.status
    return f"**{cell.ratio:.2f}**" if cell.ratio and name == OURS else f"{cell.ratio:.2f}" if cell.ratio else "?"


def _ablations(summary: Summary, pictures: dict[str, str]) -> str:
    variants = [name for name in summary.results.names if name.startswith(f"{OURS}:")]
    variants = summary.allocators_with(TIME, variants)
    if not variants:
        return ""
    against = Summary(summary.results, OURS)
    rows = []
    for name in variants:
        row = [f"`{shown(name)}`"]
        for figure in (TIME, CPU, MEMORY):
            ratios = {
                case: cell.ratio
                for case in summary.results.standard_cases(figure)
                if (cell := against.cell(case, name, figure)).ok and cell.ratio
            }
            worst = max(ratios, key=lambda case: abs(math.log(ratios[case])), default="")
            row += [f"{_mean(list(ratios.values())):.3f}", f"{worst} {ratios[worst]:.2f}"] if ratios else ["-", ""]
        rows.append(row)
    words = f"## Each mechanism off or changed\n\nRelative to {OURS} with its defaults: above 1, the mechanism is a gain. Each mean is followed by the program that changes most.\n\n"
    head = ["option", "time", "most", "processor time", "most", "peak memory", "most"]
    return words + _table(head, rows) + "\n" + pictures.get("ablations", "") + pictures.get("ablations-memory", "")


def _remote(summary: Summary, pictures: dict[str, str]) -> str:
    cases = summary.results.cases_with(REMOTE)
    names = summary.allocators_with(REMOTE, [name for name in summary.results.names if ":" not in name])
    rows = []
    for case in cases:
        cells = [summary.cell(case, name, REMOTE) for name in names]
        if any(cell.ok for cell in cells):
            rows.append([case, *map(_percent, cells)])
    if not rows:
        return ""
    words = (
        "## Remote pages\n\nIn a virtual machine of several nodes: the percentage of pages on another node than the thread "
        "that uses them.\n\n"
    )
    return (
        words
        + _table(["program/threads", *names], rows)
        + "\n"
        + _remote_ablations(summary)
        + pictures.get("remote-pages", "")
        + pictures.get("spread", "")
    )


def _remote_ablations(summary: Summary) -> str:
    """Transposed, because there are many options and few programs."""
    names = summary.allocators_with(REMOTE, [name for name in summary.results.names if name.startswith(f"{OURS}:")])
    if not names:
        return ""
    cases = [
        case for case in summary.results.cases_with(REMOTE) if any(summary.cell(case, name, REMOTE).status != NOT_RUN for name in names)
    ]
    rows = [[f"`{shown(name)}`", *(_percent(summary.cell(case, name, REMOTE)) for case in cases)] for name in (OURS, *names)]
    words = "The same programs with one mechanism off or changed.\n\n"
    return words + _table(["option", *(case.removeprefix(LAB) for case in cases)], rows) + "\n"


def _percent(cell: Cell) -> str:
    return "" if cell.status == NOT_RUN else f"{cell.value:.1f}" if cell.ok else cell.status


def _failures(results: Results) -> str:
    reasons: dict[tuple[str, str], dict[str, None]] = {}
    for run in results.runs:
        if run.reason:
            reasons.setdefault((run.status, run.reason), {})[f"{run.case} under {run.allocator}"] = None
    rows = [[status, reason.replace("|", "\\|"), _some(list(where))] for (status, reason), where in reasons.items()]
    return f"## What did not complete\n\n{_table(['how', 'why', 'where'], rows)}" if rows else ""


def _some(where: list[str]) -> str:
    return ", ".join(where[:3]) + (f" and {len(where) - 3} more" if len(where) > 3 else "")


def _versions(results: Results) -> str:
    versions = ", ".join(f"{one['name']} {one['version']}".strip() for one in results.allocators if ":" not in one["name"])
    return f"Versions: {versions}.\n"
