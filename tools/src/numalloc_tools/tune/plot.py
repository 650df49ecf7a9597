"""Speed against memory: a point for each setting, and a line along those that no other setting beats in both."""

from dataclasses import dataclass
from pathlib import Path

from numalloc_tools.launch import Setting
from numalloc_tools.machine.words import printable
from numalloc_tools.problem import Problem
from numalloc_tools.tune.aims import Aim
from numalloc_tools.tune.result import Result
from numalloc_tools.tune.wording import named


@dataclass(frozen=True)
class Point:
    setting: Setting
    memory: float  # MiB
    value: float  # relative to the baseline in the same blocks: other blocks were measured at other times
    bounds: tuple[float, float] | None


def points(result: Result) -> list[Point]:
    search = result.search
    ratios = search.records.scale(0).ratios
    found = []
    for row in result.rows:
        beside = search.confirmed(row.setting) if row.setting in search.arms[1:] else None
        beside = beside or row.comparison
        if beside:
            found.append(Point(row.setting, row.peak / 2**20, beside.ratio(), beside.bounds()))
        elif row.setting == search.reference:
            found.append(Point(row.setting, row.peak / 2**20, 1.0 if ratios else 0.0, None))
    return found


def front(some: list[Point], aim: Aim) -> list[Point]:
    """Sorted by memory."""
    kept: list[Point] = []
    for point in sorted(some, key=lambda point: (point.memory, aim.sign * point.value)):
        if not kept or aim.sign * point.value < aim.sign * kept[-1].value:
            kept.append(point)
    return kept


def draw(result: Result, path: Path) -> None:
    from numalloc_tools.style import FAINT, TEXT, colours, plt  # takes half a second: imported only to draw

    search = result.search
    aim = search.records.aims[0]
    some = [point for point in points(result) if point.setting not in search.fallen and point.memory]
    best = front(some, aim)
    names = list(dict.fromkeys(point.setting.allocator for point in some))
    colour = colours(names)
    figure, axes = plt.subplots(figsize=(8, 5.5))
    axes.plot([point.memory for point in best], [point.value for point in best], color=FAINT, zorder=1, label="Pareto front")
    for name in names:
        own = [point for point in some if point.setting.allocator == name]
        axes.scatter([point.memory for point in own], [point.value for point in own], color=colour[name], label=name, zorder=2)
    for point in some:
        if point.bounds:
            axes.plot([point.memory] * 2, point.bounds, color=colour[point.setting.allocator], linewidth=1)
        if point.setting in (search.found.chosen, search.reference) or point in best:
            where = (point.memory, point.value)
            axes.annotate(named(point.setting), where, xytext=(6, 4), textcoords="offset points", fontsize=8, color=TEXT)
        if point.setting == search.found.chosen:
            axes.scatter([point.memory], [point.value], s=140, facecolors="none", edgecolors=TEXT, zorder=3, label="chosen")
    axes.set_xlabel("peak memory, MiB")
    between = "/" if search.records.scale(0).ratios else "less that of"
    axes.set_ylabel(f"{aim.name} {between} {named(search.reference)} ({'more' if aim.higher else 'less'} is better)")
    axes.set_title(printable(Path(result.tuning.program.command[0]).name))
    axes.margins(x=0.15)
    axes.legend(fontsize=8)
    try:
        figure.savefig(path, bbox_inches="tight")
    except OSError as error:
        path.unlink(missing_ok=True)
        raise Problem(f"--output: {path} cannot be written ({error.strerror}); accepted: a writable folder") from None
    finally:
        plt.close(figure)
