"""A search, from its options to its files."""

import json
import random
import sys
import time
from pathlib import Path

from rich.console import Console

from numalloc_tools.allocators.found import our_library
from numalloc_tools.launch import Setting, profile, program
from numalloc_tools.machine.brief import facts
from numalloc_tools.machine.online import node_of_cpu
from numalloc_tools.problem import Problem
from numalloc_tools.progress import interruptible
from numalloc_tools.tune import plot, report, space, why
from numalloc_tools.tune.drive import Launches, Tuning
from numalloc_tools.tune.journal import Journal
from numalloc_tools.tune.measure import Program
from numalloc_tools.tune.options import Asked, Options
from numalloc_tools.tune.progress import Shown
from numalloc_tools.tune.records import Records
from numalloc_tools.tune.result import Result, as_json, rows
from numalloc_tools.tune.search import Search

INTERRUPTED = 130
TABLE_WIDTH = 110  # in a narrower table the figures are cut
_RUNS, _PICTURE, _PROFILE = "runs.jsonl", "plot.png", "setting.toml"


def run(command: list[str], options: Options, as_data: bool) -> None:
    asked = Asked(command, options)
    path = None if asked.elsewhere else program.find(command[0])
    tuned = Program(command, asked.metric, asked.limit, options.stdin)
    launches = Launches(command, tuned.environment)
    for setting in asked.baselines:  # settings that equal one of them are not tried again
        launches.refused(setting)
    stages = space.grid(asked.space) if options.grid else space.stages(asked.space)
    search = Search(stages, asked.baselines, asked.budget, Records(asked.aims), launches.refused, options.least / 100)
    if asked.budget.runs is not None and asked.budget.runs < (fewest := search.fewest_runs()):
        raise Problem(f"--runs: {asked.budget.runs} is too few; accepted: {fewest} or more, or fewer --allocators")
    journal = _journal(options, asked.as_data(command))
    search.shuffle_by(journal.seed)
    tuning = Tuning(tuned, search, journal, launches)
    terminal = Console(stderr=True)
    _say_what_takes_no_part(terminal, asked, path)
    finished = _go(tuning, terminal)
    result = Result(tuning, rows(tuning), [], {})
    if finished and search.found.chosen:
        _explain(result, search.found.chosen, asked.elsewhere)
    files, missing = _write(result, journal.path)
    if as_data:
        print(json.dumps(as_json(result, files), indent=1))
    else:
        console = Console()
        console.width = max(console.width, TABLE_WIDTH)
        report.show(console, result)
        for what, file in files.items():
            report.line(console, f"{what}: {file}")
    for problem in missing:
        print(f"numalloc: {problem}", file=sys.stderr)
    if not finished:
        again = f"the same command with --resume {journal.path} continues"
        print(f"numalloc: interrupted after {search.budget.done} runs; {again}", file=sys.stderr)
        sys.exit(INTERRUPTED)
    if missing:
        sys.exit(missing[0].exit_status)


def _say_what_takes_no_part(terminal: Console, asked: Asked, path: str | None) -> None:
    if not asked.options.allocators and not asked.options.space:
        for name, reason in asked.missing.items():
            report.line(terminal, f"{name} does not take part: {reason}", style="dim")
    if path and "numalloc" not in asked.missing and (found := program.obstacle(path, our_library())):
        report.line(terminal, f"{found.reason}: no allocator can be preloaded", style="yellow")


def _journal(options: Options, asked: dict) -> Journal:
    if options.resume:
        if options.output or options.seed is not None:
            raise Problem(f"--resume: {options.resume} determines the folder and the seed; accepted: without --output and --seed")
        return Journal.resume(options.resume, asked)
    folder = options.output or _free_folder()
    if (folder / _RUNS).exists():
        raise Problem(f"--output: {folder} contains the runs of a search; accepted: another folder, or --resume {folder / _RUNS}")
    seed = random.randrange(10**6) if options.seed is None else options.seed
    return Journal.begin(folder / _RUNS, asked, {"seed": seed, "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **facts()})


def _free_folder() -> Path:
    number, folder = 1, Path("numalloc-tune")
    while folder.exists():
        number += 1
        folder = Path(f"numalloc-tune-{number}")
    return folder


def _go(tuning: Tuning, terminal: Console) -> bool:
    """False after Ctrl-C."""
    try:
        with interruptible(), Shown(terminal, tuning.search) as shown:
            tuning.go(shown)
    except KeyboardInterrupt:
        tuning.search.found.verdict = "interrupted"
        return False
    finally:
        tuning.journal.close()
    return True


def _explain(result: Result, chosen: Setting, elsewhere: bool) -> None:
    tuning, reference = result.tuning, result.search.reference
    result.findings = why.findings(tuning.runs[chosen], tuning.runs[reference])
    if elsewhere:
        return  # programs on the other machine cannot be sampled from here
    try:
        with interruptible():
            for setting in (chosen, reference):
                if one := why.seen(tuning.looked_at(setting, node_of_cpu())):
                    result.seen[setting] = one
    except KeyboardInterrupt:  # the search has ended: its result is still shown
        pass


def _write(result: Result, journal: Path) -> tuple[dict[str, str], list[Problem]]:
    """The files written beside the runs, and those that could not be written: the result is shown in any case."""
    files, missing = {"runs": str(journal)}, []
    chosen = result.search.found.chosen
    for what, name, wanted, write in (
        ("picture", _PICTURE, bool(result.rows), lambda path: plot.draw(result, path)),
        ("profile", _PROFILE, chosen is not None, lambda path: profile.save(path, chosen, "--output")),
    ):
        if not wanted:
            continue
        try:
            write(journal.with_name(name))
            files[what] = str(journal.with_name(name))
        except Problem as problem:
            missing.append(problem)
    return files, missing
