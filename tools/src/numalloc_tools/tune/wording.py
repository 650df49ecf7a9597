"""Settings, values and times in words."""

import re
import shlex
from collections.abc import Sequence

from numalloc_tools.launch import Setting
from numalloc_tools.problem import Problem
from numalloc_tools.tune.aims import Aim
from numalloc_tools.tune.changes import LEVERS
from numalloc_tools.tune.placed import placed
from numalloc_tools.tune.records import Comparison

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def named(setting: Setting) -> str:
    changed = [(name, getattr(setting, name)) for name in LEVERS if getattr(setting, name) != getattr(Setting, name)]
    words = [f"{name.replace('_', '-')}={value}" if value is not True else "binding-only" for name, value in changed]
    return " ".join([setting.allocator, *words, *(f"{name}={value}" for name, value in setting.options)])


def command_line(setting: Setting, command: Sequence[str]) -> str:
    return shlex.join(placed(["numalloc", "run", *setting.flags(), "--"], command))


def value(number: float, aim: Aim) -> str:
    if aim.unit == "B":
        return f"{number / 2**20:,.1f} MiB"
    if aim.unit == "s":
        return f"{number:.3f} s" if number < 100 else f"{number:.1f} s"
    return f"{number:,.6g}"


def peak(held: float) -> str:
    """A program may end before the first sample."""
    return value(held, Aim("", "B")) if held else "not sampled"


def percent(ratio: float) -> str:
    return f"{abs(ratio - 1) * 100:.1f} %"


def told(found: Comparison) -> str:
    """A ratio with its interval; if values are not ratios, a difference, which has a sign and a unit."""
    form, unit, each = "{:.3f}", "", 1
    if not found.scale.ratios:
        form = "{:+.4g}"
        unit, each = {"s": (" s", 1), "B": (" MiB", 2**20)}.get(found.scale.aim.unit, ("", 1))
    bounds = found.bounds()
    interval = f" ({form.format(bounds[0] / each)} to {form.format(bounds[1] / each)}{unit})" if bounds else ""
    return f"{form.format(found.ratio() / each)}{unit}{interval}"


def kind_of_comparison(ratios: bool, baseline: Setting) -> str:
    return f"ratio to {named(baseline)}" if ratios else f"difference from {named(baseline)}"


def duration(text: str, flag: str) -> float:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smh]?)", text)
    if not match or not float(match[1]):
        raise Problem(f"{flag}: '{text}' is not a time; accepted: seconds, or a number with s, m or h such as 10m")
    return float(match[1]) * _SECONDS[match[2]]
