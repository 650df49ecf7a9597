"""`numalloc tune`: the options of a search."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from numalloc_tools.allocators import BASELINE
from numalloc_tools.allocators.found import NAMES
from numalloc_tools.completion import some_of
from numalloc_tools.tune.budget import RUNS
from numalloc_tools.tune.placed import HERE

WHAT, SEARCHED, ENDS, OUTPUT = "What is better", "What is searched", "When it ends", "What it leaves"


def register(app: typer.Typer) -> None:
    app.command("tune", context_settings={"allow_interspersed_args": False}, no_args_is_help=True)(tune)


def tune(
    command: Annotated[
        list[str],
        typer.Argument(
            help=f"The program and its arguments. Where {HERE} stands among them, as in mpirun -n 8 {HERE} ./app, `numalloc run` and its flags are put.",
            metavar="PROGRAM [ARGS]...",
        ),
    ],
    metric: Annotated[
        Optional[str],
        typer.Option(
            help="Read a number from what the program prints, instead of taking the time: a regular expression with one group.",
            metavar="REGEX",
            rich_help_panel=WHAT,
        ),
    ] = None,
    higher: Annotated[bool, typer.Option("--higher", help="More of the metric is better.", rich_help_panel=WHAT)] = False,
    lower: Annotated[bool, typer.Option("--lower", help="Less of the metric is better.", rich_help_panel=WHAT)] = False,
    memory: Annotated[
        bool,
        typer.Option(
            "--memory",
            help="Less peak memory is a second aim: the result is a front, from the fastest to the leanest.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    least: Annotated[float, typer.Option(help="A gain of less is not worth a change.", metavar="PERCENT", rich_help_panel=WHAT)] = 1.0,
    baseline: Annotated[
        str,
        typer.Option(
            help="What the rest is compared with: glibc, as the program would run without numalloc, or numalloc with its defaults. Both take part.",
            rich_help_panel=WHAT,
        ),
    ] = BASELINE,
    names: Annotated[
        Optional[str],
        typer.Option(
            "--allocators",
            help="These, with commas: names or paths as `numalloc run --allocator` takes them; else numalloc, glibc and the packages that are installed.",
            metavar="NAMES",
            rich_help_panel=SEARCHED,
            autocompletion=some_of(*NAMES),
        ),
    ] = None,
    fix: Annotated[
        Optional[list[str]],
        typer.Option(help="A lever or option that keeps this value. Repeatable.", metavar="NAME=VALUE", rich_help_panel=SEARCHED),
    ] = None,
    space_file: Annotated[
        Optional[Path],
        typer.Option("--space", help="A TOML file with the values of levers and options to try.", metavar="FILE", rich_help_panel=SEARCHED),
    ] = None,
    whole_grid: Annotated[
        bool, typer.Option("--grid", help="Race all combinations at once, instead of one lever after the other.", rich_help_panel=SEARCHED)
    ] = False,
    nodes: Annotated[
        Optional[int],
        typer.Option(
            help=f"With {HERE}: memory nodes of the machine where the program runs, if it is not this one.", rich_help_panel=SEARCHED
        ),
    ] = None,
    runs: Annotated[
        Optional[int],
        typer.Option(help=f"The most runs; {RUNS} if there is no --budget either.", show_default=False, rich_help_panel=ENDS),
    ] = None,
    budget: Annotated[
        Optional[str], typer.Option(help="The most time in runs: 90s, 10m, 1h.", metavar="TIME", rich_help_panel=ENDS)
    ] = None,
    limit: Annotated[
        Optional[str],
        typer.Option(
            help="A run that takes longer is stopped, and its setting falls out; else 10 times the first run.",
            metavar="TIME",
            rich_help_panel=ENDS,
        ),
    ] = None,
    stdin: Annotated[
        Optional[Path],
        typer.Option(help="What the program reads as its standard input; else nothing.", metavar="FILE", rich_help_panel=OUTPUT),
    ] = None,
    output: Annotated[
        Optional[Path],
        typer.Option(
            help="The folder for runs.jsonl, setting.toml and plot.png; else numalloc-tune, or numalloc-tune-2 and so on.",
            metavar="FOLDER",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    resume: Annotated[
        Optional[Path], typer.Option(help="Go on with the search whose runs this file keeps.", metavar="FILE", rich_help_panel=OUTPUT)
    ] = None,
    seed: Annotated[Optional[int], typer.Option(help="Of the order of runs; else by chance.", rich_help_panel=OUTPUT)] = None,
    as_data: Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=OUTPUT)] = False,
) -> None:
    """Search for the setting under which a program runs best: allocator, threads, memory, huge pages, options.

    Settings race against each other, and bad ones fall out. The best is then measured anew beside the baseline,
    and only these runs decide. Where nothing is shown to be better, nothing is proposed.
    Exits with 1 if the program fails under the baseline, with 130 after Ctrl-C, which keeps what was measured.
    """
    # What follows takes a second to load, which no other command should wait for.
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
