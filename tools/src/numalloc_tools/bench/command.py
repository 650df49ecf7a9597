"""`numalloc bench`: the options of a run, and the run."""

import sys
import time
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console
from rich.markup import escape

from numalloc_tools import allocators, programs
from numalloc_tools.allocators import ablations, crates
from numalloc_tools.bench import lab_run, levers, manifest, report
from numalloc_tools.bench.earlier import set_aside
from numalloc_tools.bench.progress import run_plan
from numalloc_tools.bench.results import Results
from numalloc_tools.bench.schedule import Plan
from numalloc_tools.bench.table import print_tables
from numalloc_tools.checks import require_folder, require_least
from numalloc_tools.completion import some_of
from numalloc_tools.guest.machine import build_machine
from numalloc_tools.machine.brief import facts
from numalloc_tools.preload import our_library
from numalloc_tools.problem import Problem
from numalloc_tools.programs import real

QUICK_SECONDS, QUICK_SCALE, QUICK_BUILD_SECONDS = 285.0, 0.1, 60.0
QUICK_LIMIT = 15.0  # seconds: the limit of a run
QUICK_ALLOCATORS = (allocators.OURS, allocators.BASELINE, "jemalloc-new", "tcmalloc", "mimalloc3", "snmalloc", "rpmalloc")
ROUNDS = 5
TABLE_WIDTH = 110  # in a narrower table the figures are cut
INTERRUPTED = 130
OF_THE_LAB = ("nodes", "cpus_per_node", "memory_per_node")
NOT_IN_THE_LAB = ("limit", "minutes")

app = typer.Typer(invoke_without_command=True, no_args_is_help=False)
report.register(app)


@app.callback()
def bench(
    context: typer.Context,
    only: Annotated[
        Optional[str],
        typer.Option(help="The programs to run: names, families, 'own', 'real' or 'brought', separated by commas. Default: all."),
    ] = None,
    brought: Annotated[
        Optional[list[Path]],
        typer.Option(
            "--programs", help="Add the programs that a TOML file describes; without --only, run these alone. Repeatable.", metavar="FILE"
        ),
    ] = None,
    names: Annotated[
        Optional[str],
        typer.Option(
            "--allocators",
            help=f"The allocators to compare, among {', '.join(allocators.NAMES)}; with {allocators.BOUND} after a name, its "
            "threads are bound.",
            autocompletion=some_of(*allocators.NAMES),
        ),
    ] = None,
    allocator: Annotated[Optional[list[str]], typer.Option(help="Also measure this library. Repeatable.", metavar="NAME=PATH")] = None,
    binding: Annotated[
        Optional[bool],
        typer.Option("--binding/--no-binding", help="Also run each peer with bound threads. Default: only on several nodes."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Measured rounds, after one warm-up round.")] = ROUNDS,
    threads: Annotated[
        Optional[str], typer.Option(help="Numbers of threads, such as 1,2,4, or 'all'. Default: each program's standard number.")
    ] = None,
    scale: Annotated[Optional[float], typer.Option(help="Amount of work per run; at 1 a run takes a second or two.")] = None,
    paper: Annotated[
        bool,
        typer.Option("--paper", help="Use the sizes of the paper that a program comes from, if it has them; --scale multiplies these."),
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the programs' random numbers.")] = 1,
    limit: Annotated[Optional[float], typer.Option(help="Seconds after which a run is stopped. Default: 120 at scale 1.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="End within 5 minutes: less work, fewer peers, and as many rounds as fit.")
    ] = False,
    minutes: Annotated[Optional[float], typer.Option(help="Run as many whole rounds as fit into this time, at most --rounds.")] = None,
    ablation: Annotated[
        bool, typer.Option("--ablations", help="Compare numalloc with variants of itself, each with one mechanism off or changed.")
    ] = False,
    lever: Annotated[
        Optional[list[str]],
        typer.Option(
            help=f"Run each allocator with each of these values of a lever: {', '.join(levers.LEVERS)}; 'default' sets "
            "nothing. Repeatable: runs all combinations.",
            metavar="NAME=VALUE,VALUE",
        ),
    ] = None,
    baseline: Annotated[str, typer.Option(help="The allocator to which ratios relate.")] = "",
    library: Annotated[
        Optional[Path], typer.Option(help="The libnumalloc.so to measure. Default: the one built here or above, or installed.")
    ] = None,
    json_file: Annotated[
        Path, typer.Option("--json", help="The file for the results. An earlier one is kept under another name.", metavar="FILE")
    ] = Path("numalloc-bench.json"),
    show_list: Annotated[bool, typer.Option("--list", help="List the programs, and the packages that they lack.")] = False,
    lab: Annotated[bool, typer.Option("--lab", help="Run in a virtual NUMA machine, and measure where pages are instead of time.")] = False,
    nodes: Annotated[int, typer.Option(help="Memory nodes of the lab's virtual machine.")] = 8,
    cpus_per_node: Annotated[str, typer.Option(help="CPUs on each of its nodes.")] = "2",
    memory_per_node: Annotated[str, typer.Option(help="Memory on each of its nodes.")] = "1G",
    build: Annotated[bool, typer.Option("--build", help="Only build the peers whose sources are in crates.")] = False,
) -> None:
    """Run programs under numalloc and its peers, side by side, and keep every figure as JSON.

    Exit status: 0 even if a program fails under an allocator, since a row reports that; 2 if something is missing
    or misspelt; 130 after Ctrl-C, which keeps the results until then.
    """
    if context.invoked_subcommand:
        return
    begun = time.monotonic()
    terminal = Console()
    terminal.width = max(terminal.width, TABLE_WIDTH)
    if build:
        _build(terminal)
        return
    ours = our_library(library)
    known = [*programs.own(ours), *real.programs()]
    known += manifest.programs(brought or [], {one.name for one in known})
    chosen_programs = programs.selected(known, _words(only) or ([programs.BROUGHT] if brought else []))
    if show_list:
        _show(terminal, chosen_programs)
        return
    _check_lab(context, lab)
    if quick and lab:
        raise Problem("--quick: a virtual machine is slow; accepted: --lab with --only and --allocators for a short run")
    if quick and not only and not brought:
        # If the time is too short for all programs, the real ones run first.
        chosen_programs = sorted((one for one in chosen_programs if one.quick), key=lambda one: one.kind == programs.OWN)
    if paper:
        chosen_programs = _of_papers_size(chosen_programs, bool(only), quick or lab)
    _check(rounds, scale, limit, minutes, json_file)
    pulled = levers.parsed(lever or [])
    if lever and lab:
        raise Problem(
            "--lever: does not apply to the lab's machine; accepted: without --lab, or numalloc lab run with --thp and --autonuma"
        )
    guest = build_machine(nodes, cpus_per_node, memory_per_node, "ladder") if lab else None
    scale = scale or (lab_run.SCALE if lab else QUICK_SCALE if quick else 1.0)
    numbers = _thread_numbers(threads) or ([guest.cpus] if guest else [])
    cases = programs.cases(chosen_programs, numbers, threads == "all")
    others = allocators.given(allocator or [])
    wanted = _wanted(names, others, quick, ablation, binding)
    compared = allocators.chosen(wanted, ours, others, terminal.print, QUICK_BUILD_SECONDS if quick else 1800)
    if ablation:
        compared = ablations.compared(compared[0])
    left_undone: list[str] = []
    if lever:
        compared, left_undone = levers.variants(compared, pulled)
    baseline = _baseline(baseline, [one.name for one in compared])
    seconds = QUICK_SECONDS if quick else 60 * minutes if minutes else None
    deadline = None if seconds is None else begun + seconds
    plan = Plan(cases, compared, rounds, scale, seed, deadline, min(limit or QUICK_LIMIT, QUICK_LIMIT) if quick else limit, paper)
    results = Results(
        facts(),
        {
            "scale": scale,
            "paper": paper,
            "seed": seed,
            "rounds": rounds,
            "quick": quick,
            "baseline": baseline,
            "command": sys.argv[1:],
            "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        },
        [
            {
                "name": one.name,
                "version": one.version,
                "libraries": list(map(str, one.libraries)),
                "options": one.options,
                "missing": one.missing,
            }
            for one in compared
        ],
        [
            {
                "name": one.name,
                "family": one.family,
                "kind": one.kind,
                "standard_threads": one.standard_threads,
                "description": one.description,
                "source": one.source,
            }
            for one in chosen_programs
        ],
    )
    if left_undone:
        results.settings["left_undone"] = left_undone
    if kept := set_aside(json_file):
        terminal.print(f"{json_file} of an earlier run is now {kept}", highlight=False, markup=False, soft_wrap=True)
    if guest:
        results.settings["lab"] = {"nodes": nodes, "cpus_per_node": cpus_per_node, "memory_per_node": memory_per_node}
        finished = lab_run.run(guest, cases, compared, results, json_file, terminal, programs.sources(ours) / "real")
    else:
        finished = run_plan(plan, results, json_file, terminal)
    print_tables(terminal, results, baseline)
    for note in left_undone:
        terminal.print(note, highlight=False, markup=False)
    terminal.print(f"{json_file} is written; numalloc bench report {json_file} draws it", highlight=False, markup=False)
    if not finished:
        sys.exit(INTERRUPTED)


def _check_lab(context: typer.Context, lab: bool) -> None:
    """Rejects options that would have no effect: their defaults tell nothing, so the command line must."""
    reason = (
        "does not apply to the lab's machine; accepted: without" if lab else "applies to the lab's machine only; accepted: together with"
    )
    for name in NOT_IN_THE_LAB if lab else OF_THE_LAB:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise Problem(f"--{name.replace('_', '-')}: {reason} --lab")


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _of_papers_size(chosen: list[programs.Program], named: bool, small: bool) -> list[programs.Program]:
    able = [one for one in chosen if one.paper]
    accepted = "accepted: --only analytics, point-clusters, ray-casting or multigrid"
    if small:
        raise Problem("--paper: a run takes minutes; accepted: without --quick and --lab")
    if named and len(able) < len(chosen):
        without = next(one.name for one in chosen if not one.paper)
        raise Problem(f"--paper: {without} has no paper sizes; {accepted}")
    if not able:
        raise Problem(f"--paper: none of these programs has paper sizes; {accepted}, or a file of --programs with paper sizes")
    return able


def _check(rounds: int, scale: float | None, limit: float | None, minutes: float | None, json_file: Path) -> None:
    require_least(rounds, "--rounds")
    if scale is not None and not scale > 0:
        raise Problem(f"--scale: {scale:g} is too little; accepted: more than 0, such as 0.5")
    if limit is not None and not limit > 0:
        raise Problem(f"--limit: {limit:g} is too little; accepted: seconds, more than 0")
    if minutes is not None and not minutes > 0:
        raise Problem(f"--minutes: {minutes:g} is too little; accepted: more than 0")
    require_folder(json_file, "--json", replaced=True)


def _thread_numbers(text: str | None) -> list[int]:
    numbers = []
    for word in _words(text if text != "all" else None):
        if not word.isdecimal() or not 1 <= int(word) <= 10_000:
            raise Problem(f"--threads: '{word}' is not a number of threads; accepted: numbers such as 1,2,4, or all")
        numbers.append(int(word))
    return list(dict.fromkeys(numbers))


def _wanted(names: str | None, others: dict[str, Path], quick: bool, ablation: bool, binding: bool | None) -> list[str]:
    if ablation:
        if names:
            raise Problem("--allocators: --ablations compares numalloc with itself only; accepted: one of the two")
        return [allocators.OURS]
    if names:
        wanted = [*_words(names), *others]
    else:
        wanted = [*(QUICK_ALLOCATORS if quick else allocators.NAMES), *others]
    if binding or (binding is None and not names and not quick and facts()["nodes"] > 1):
        wanted += [name + allocators.BOUND for name in wanted if name != allocators.OURS and not name.endswith(allocators.BOUND)]
    return wanted


def _baseline(name: str, compared: list[str]) -> str:
    if name and name not in compared:
        raise Problem(f"--baseline: '{name}' is not measured; accepted: {', '.join(compared)}")
    plain = [one for one in compared if one.partition(levers.AT)[0] == allocators.BASELINE]
    return name or (plain or compared)[0]


def _show(terminal: Console, known: list[programs.Program]) -> None:
    for program in known:
        numbers = ", ".join(map(str, program.threads))
        terminal.print(f"[bold]{escape(program.name)}[/bold] [dim]({escape(program.family)}; threads {numbers})[/dim]", highlight=False)
        for line in (program.description, program.source, program.missing):
            if line:
                terminal.print(f"    {line}", highlight=False, markup=False, soft_wrap=True)


def _build(terminal: Console) -> None:
    failed = False
    for name, recipe in crates.RECIPES.items():
        try:
            path = crates.build(name)
            terminal.print(f"{name} {recipe.allocator_version}: {path}", highlight=False, soft_wrap=True, markup=False)
        except crates.CannotBuild as reason:
            terminal.print(f"{name} {recipe.allocator_version} cannot be built: {reason}", highlight=False, soft_wrap=True, markup=False)
            failed = True
    if failed:
        sys.exit(1)
