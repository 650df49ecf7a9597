"""The user's options, checked and converted to the terms of a search."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from numalloc_tools.allocators import BASELINE, OURS
from numalloc_tools.checks import require_least
from numalloc_tools.launch import Setting, prepared
from numalloc_tools.launch.nodes import autonuma_is_on
from numalloc_tools.problem import Problem
from numalloc_tools.tune import machine, space
from numalloc_tools.tune.aims import Aim
from numalloc_tools.tune.budget import RUNS, Budget
from numalloc_tools.tune.metric import Metric
from numalloc_tools.tune.placed import HERE
from numalloc_tools.tune.wording import duration


@dataclass(frozen=True)
class Options:
    """The values of the command's flags."""

    metric: str | None
    higher: bool
    lower: bool
    memory: bool
    least: float  # percent
    baseline: str
    allocators: str | None
    fix: list[str]
    space: Path | None
    grid: bool
    nodes: int | None
    runs: int | None
    budget: str | None
    limit: str | None
    stdin: Path | None
    output: Path | None
    resume: Path | None
    seed: int | None


class Asked:
    """Checks everything before anything runs."""

    def __init__(self, command: list[str], options: Options):
        self.options = options
        self.elsewhere = HERE in command
        self.aims = [_aim(options), *([Aim("peak memory", "B")] if options.memory else [])]
        self.metric = Metric(options.metric) if options.metric is not None else None
        self.budget = _budget(options)
        self.limit = duration(options.limit, "--limit") if options.limit else None
        if not 0 <= options.least < 100:
            raise Problem(f"--least: {options.least:g} is out of range; accepted: percent, from 0 to below 100")
        if options.nodes is not None and (not self.elsewhere or options.nodes < 1):
            text = f"--nodes: {options.nodes} is for programs that run elsewhere"
            raise Problem(f"{text}; accepted: 1 or more, with {HERE} among the words")
        if options.stdin and not (options.stdin.is_file() and os.access(options.stdin, os.R_OK)):
            raise Problem(f"--stdin: {options.stdin} cannot be read; accepted: a file")
        present, self.missing = machine.present_allocators()
        self.space = self._space(present)
        self.baselines = _baselines(options.baseline, present)

    def _space(self, present: list[str]) -> space.Space:
        options, here = self.options, not self.elsewhere
        nodes = options.nodes or machine.node_count()
        found = space.usual(present, nodes, here and autonuma_is_on(), here and machine.policy_is_inherited())
        if options.space:
            found = space.from_file(options.space, found)
        if options.allocators is not None:
            names = [word.strip() for word in options.allocators.split(",") if word.strip()]
            if not names:
                raise Problem(f"--allocators: '{options.allocators}' names none; accepted: names with commas, such as numalloc,glibc")
            found = replace(found, allocators=tuple(dict.fromkeys(names)))
        for text in options.fix:
            found = space.with_fixed(found, text)
        for name in found.allocators:
            if here and name not in present:
                prepared(Setting(name))  # raises Problem if this machine does not have it
        return found

    def as_data(self, command: list[str]) -> dict:
        """The part that must be equal when a call resumes the search."""
        options = self.options
        return {
            "program": command,
            "metric": options.metric,
            "higher": options.higher,
            "memory": options.memory,
            "baseline": options.baseline,
            "least": options.least,
            "space": self.space.as_data(),
            "grid": options.grid,
            "runs": self.budget.runs,
            "budget": self.budget.seconds,
            "limit": self.limit,
            "stdin": str(options.stdin) if options.stdin else None,
        }


def _aim(options: Options) -> Aim:
    if options.metric is None:
        if options.higher or options.lower:
            flag = "--higher" if options.higher else "--lower"
            raise Problem(f"{flag}: has no effect without --metric; accepted: with --metric")
        return Aim("time", "s")
    if options.higher == options.lower:
        raise Problem("--metric: needs the direction that is better; accepted: one of --higher and --lower")
    return Aim("metric", higher=options.higher)


def _budget(options: Options) -> Budget:
    seconds = duration(options.budget, "--budget") if options.budget else None
    require_least(options.runs, "--runs")
    return Budget(RUNS if options.runs is None and seconds is None else options.runs, seconds)


def _baselines(first: str, present: list[str]) -> list[Setting]:
    both = {BASELINE: Setting(BASELINE), OURS: Setting()}
    if first not in both:
        raise Problem(f"--baseline: '{first}' is unknown; accepted: {', '.join(both)}")
    if first not in present:
        prepared(Setting(first))  # as above
    return [both[first], *(setting for name, setting in both.items() if name != first and name in present)]
