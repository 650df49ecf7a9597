"""`numalloc tune`: the options of a search."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from numalloc_tools.allocators import BASELINE
from numalloc_tools.allocators.found import NAMES
from numalloc_tools.completion import some_of
from numalloc_tools.tune.budget import RUNS
from numalloc_tools.tune.placed import HERE

WHAT, SEARCHED, ENDS, OUTPUT = "Aims", "Search space", "Limits", "Input and output"


def register(app: typer.Typer) -> None:
    app.command("tune", context_settings={"allow_interspersed_args": False}, no_args_is_help=True)(tune)


def tune(
    command: Annotated[
        list[str],
        typer.Argument(
            help=f"The program and its arguments. {HERE} among them, as in mpirun -n 8 {HERE} ./app, is replaced by `numalloc run` and its flags.",
            metavar="PROGRAM [ARGS]...",
        ),
    ],
    metric: Annotated[
        Optional[str],
        typer.Option(
            help="Instead of time, measure a number that the program prints: a regular expression with one group.",
            metavar="REGEX",
            rich_help_panel=WHAT,
        ),
    ] = None,
    higher: Annotated[bool, typer.Option("--higher", help="Larger values of the metric are better.", rich_help_panel=WHAT)] = False,
    lower: Annotated[bool, typer.Option("--lower", help="Smaller values of the metric are better.", rich_help_panel=WHAT)] = False,
    memory: Annotated[
        bool,
        typer.Option(
            "--memory",
            help="Minimise peak memory too: the result is a front of settings, from the fastest to the one with least memory.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    least: Annotated[float, typer.Option(help="The smallest gain that is worth a change.", metavar="PERCENT", rich_help_panel=WHAT)] = 1.0,
    baseline: Annotated[
        str,
        typer.Option(
            help="The setting for comparison: glibc, as the program runs without numalloc, or numalloc with its defaults. Both take part.",
            rich_help_panel=WHAT,
        ),
    ] = BASELINE,
    names: Annotated[
        Optional[str],
        typer.Option(
            "--allocators",
            help="Allocators to try, separated by commas: names or paths as for `numalloc run --allocator`. Default: numalloc, glibc and the installed packages.",
            metavar="NAMES",
            rich_help_panel=SEARCHED,
            autocompletion=some_of(*NAMES),
        ),
    ] = None,
    fix: Annotated[
        Optional[list[str]],
        typer.Option(help="Keep this value of a lever or option. Repeatable.", metavar="NAME=VALUE", rich_help_panel=SEARCHED),
    ] = None,
    space_file: Annotated[
        Optional[Path],
        typer.Option("--space", help="A TOML file with the values of levers and options to try.", metavar="FILE", rich_help_panel=SEARCHED),
    ] = None,
    whole_grid: Annotated[
        bool, typer.Option("--grid", help="Try all combinations at once, instead of one lever after the other.", rich_help_panel=SEARCHED)
    ] = False,
    nodes: Annotated[
        Optional[int],
        typer.Option(
            help=f"With {HERE}: number of memory nodes of the machine on which the program runs, if it is another one.",
            rich_help_panel=SEARCHED,
        ),
    ] = None,
    runs: Annotated[
        Optional[int],
        typer.Option(
            help=f"The maximum number of runs. Default: {RUNS}, unless --budget is given.", show_default=False, rich_help_panel=ENDS
        ),
    ] = None,
    budget: Annotated[
        Optional[str], typer.Option(help="The maximum time of all runs: 90s, 10m, 1h.", metavar="TIME", rich_help_panel=ENDS)
    ] = None,
    limit: Annotated[
        Optional[str],
        typer.Option(
            help="Stop a run that takes longer, and drop its setting. Default: 10 times the first run.",
            metavar="TIME",
            rich_help_panel=ENDS,
        ),
    ] = None,
    stdin: Annotated[
        Optional[Path],
        typer.Option(help="The program's standard input. Default: empty.", metavar="FILE", rich_help_panel=OUTPUT),
    ] = None,
    output: Annotated[
        Optional[Path],
        typer.Option(
            help="The folder for runs.jsonl, setting.toml and plot.png. Default: numalloc-tune, or numalloc-tune-2 and so on.",
            metavar="FOLDER",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    resume: Annotated[
        Optional[Path], typer.Option(help="Continue the search whose runs are in this file.", metavar="FILE", rich_help_panel=OUTPUT)
    ] = None,
    seed: Annotated[Optional[int], typer.Option(help="Seed of the order of runs. Default: random.", rich_help_panel=OUTPUT)] = None,
    as_data: Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Search for the setting under which a program runs best: allocator, threads, memory, huge pages, options.

    Settings race against each other, and bad ones are dropped. Then the best one is measured again together with the
    baseline, and only these runs decide. If no setting is shown to be better, none is proposed. Exit status: 1 if the
    program fails under the baseline; 130 after Ctrl-C, which keeps the results so far.
    """
    # Imported here: these modules take a second to load, and other commands do not need them.
    from numalloc_tools.tune import options, session

    asked = options.Options(
        metric=metric,
        higher=higher,
        lower=lower,
        memory=memory,
        least=least,
        baseline=baseline,
        allocators=names,
        fix=fix or [],
        space=space_file,
        grid=whole_grid,
        nodes=nodes,
        runs=runs,
        budget=budget,
        limit=limit,
        stdin=stdin,
        output=output,
        resume=resume,
        seed=seed,
    )
    session.run(command, asked, as_data)
