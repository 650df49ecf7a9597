"""`numalloc bench`: numalloc beside every allocator that one would pick instead, in one run."""

import typer


def register(app: typer.Typer) -> None:
    # Here, since other commands use parts of this package, and to load all of it takes long.
    from numalloc_tools.bench.command import app as bench

    app.add_typer(bench, name="bench")
