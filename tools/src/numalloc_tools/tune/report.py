"""The result of a search as text."""

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from numalloc_tools.launch import Setting
from numalloc_tools.tune.result import Result, Row, pairs
from numalloc_tools.tune.why import Finding
from numalloc_tools.tune.wording import command_line, kind_of_comparison, named, peak, percent, told, value

_STYLES = {"chosen": "green", "failed": "red", "the baseline": "bold"}


def show(console: Console, result: Result) -> None:
    search = result.search
    _show_race(console, result)
    _say_what_was_not_measured(console, result)
    if search.arms and pairs(result.tuning):
        _show_anew(console, result)
    _say_verdict(console, result)
    if search.found.chosen and result.findings:
        _say_why(console, result)


def line(console: Console, text: str, **style) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True, **style)


def _show_race(console: Console, result: Result) -> None:
    aim = result.search.records.aims[0]
    line(console, f"The race: {aim.name}, {'more' if aim.higher else 'less'} is better")
    table = Table(box=SIMPLE)
    for name in ("setting", f"median {escape(aim.name)}", escape(_beside(result, 0)), "peak memory", "runs", ""):
        table.add_column(name, justify="left" if name in ("setting", "") else "right", overflow="fold")
    for row in result.rows:
        table.add_row(escape(named(row.setting)), *_figures(row, result), str(row.runs), row.remark, style=_STYLES.get(row.remark, ""))
    console.print(table)


def _beside(result: Result, aim: int) -> str:
    ratios = not result.rows or result.search.records.scale(aim).ratios
    return kind_of_comparison(ratios, result.search.reference)


def _figures(row: Row, result: Result) -> tuple[str, str, str]:
    aim = result.search.records.aims[0]
    return value(row.median, aim), told(row.comparison) if row.comparison else "", peak(row.peak)


def _say_what_was_not_measured(console: Console, result: Result) -> None:
    search = result.search
    for setting, reason in search.fallen.items():
        line(console, f"{named(setting)} failed: {reason}", style="red")
    for setting, reason in search.left_out.items():
        line(console, f"{named(setting)} was left out: {reason}", style="dim")
    if search.skipped:
        line(console, f"The limits left no room for: {', '.join(search.skipped)}. Use a larger --runs or --budget.", style="dim")


def _show_anew(console: Console, result: Result) -> None:
    """Only these runs decide: the race's runs influenced the choice of the settings."""
    search = result.search
    line(console, f"Measured again, {pairs(result.tuning)} runs of each, intervals of {search.level * 100:.3g} %")
    table = Table(box=SIMPLE)
    table.add_column("setting", overflow="fold")
    for number, aim in enumerate(search.records.aims):
        table.add_column(escape(f"{aim.name}, {_beside(result, number)}"), justify="right")
    for arm in search.arms:
        if arm != search.reference:
            found = [search.confirmed(arm, aim=aim) for aim in search.aims]
            style = "green" if arm in search.found.front else ""
            table.add_row(escape(named(arm)), *(told(one) if one else "" for one in found), style=style)
    console.print(table)


def _say_verdict(console: Console, result: Result) -> None:
    search, command = result.search, result.tuning.program.command
    baseline = named(search.reference)
    if search.found.verdict == "interrupted":
        line(console, "Interrupted: these are the results until then, and they do not decide anything yet.")
    elif search.found.verdict == "too small":
        line(console, f"The difference from {baseline} is below {search.least_gain * 100:g} %: not worth a change.")
    elif not search.found.chosen:
        line(console, f"No significant difference: no setting is shown to be better than {baseline}. Keep it.")
    else:
        for setting in search.found.front:
            line(console, f"{named(setting)}: {_gains(result, setting)}", style="bold")
            line(console, f"    {command_line(setting, command)}")


def _gains(result: Result, setting: Setting) -> str:
    search = result.search
    said = []
    for number, aim in enumerate(search.records.aims):
        found = search.confirmed(setting, aim=number)
        if found is None or not (found.better or found.worse):
            said.append(f"{aim.name} as under {named(search.reference)}")
        elif found.scale.ratios:
            way = "more" if found.ratio() > 1 else "less"
            said.append(f"{aim.name} {percent(found.ratio())} {way} than under {named(search.reference)}")
        else:
            said.append(f"{aim.name} {found.ratio():+.4g} beside {named(search.reference)}")
    return ", ".join(said)


def _say_why(console: Console, result: Result) -> None:
    telling = [one for one in result.findings if one.differs]
    pairs_of_runs = f"{result.findings[0].comparison.blocks} pairs of runs"
    line(console, "")
    if telling:
        line(console, f"Other significant differences, in {pairs_of_runs}:")
    elif result.findings[0].comparison.interval is None:
        line(console, f"Too few runs to explain the difference: {pairs_of_runs}.")
    else:
        line(console, f"No counter differs significantly in {pairs_of_runs}.")
    for one in telling:
        line(console, f"    {_finding(one)}")
    for setting, seen in result.seen.items() if any(one.huge or len(one.pages) > 1 for one in result.seen.values()) else ():
        nodes = ""
        if len(seen.pages) > 1:
            nodes = f"; the fullest node has {seen.fullest * 100:.0f} % of the memory"
            nodes += f", and {seen.unattended * 100:.0f} % is on nodes where no thread ran"
        line(console, f"    {named(setting)}, sampled in one more run: {seen.huge / 2**20:,.1f} MiB on huge pages{nodes}")


def _finding(one: Finding) -> str:
    kind = "ratio" if one.comparison.scale.ratios else "difference"
    return f"{one.aim.name}: {value(one.ours, one.aim)} instead of {value(one.theirs, one.aim)}, {kind} {told(one.comparison)}"
