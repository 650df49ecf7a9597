"""The `numalloc` command: a table of subcommands, each of which lives in its own package."""

import sys

import typer

from numalloc_tools import bench, demo, doctor, lab, man, run, topology
from numalloc_tools.problem import Problem

app = typer.Typer(
    help="Tools around numalloc, the NUMA-aware memory allocator.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(bench.app, name="bench")
demo.register(app)
doctor.register(app)
app.add_typer(lab.app, name="lab")
man.register(app)
run.register(app)
topology.register(app)


@app.callback()
def numalloc() -> None:
    """Tools around numalloc, the NUMA-aware memory allocator."""


def main() -> None:
    try:
        app()
    except Problem as problem:
        print(f"numalloc: {problem}", file=sys.stderr)
        sys.exit(problem.exit_status)
    except OSError as error:
        print(f"numalloc: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        sys.exit(125)
    except KeyboardInterrupt:
        sys.exit(130)
