"""`numalloc bench`: compares numalloc with its peers in one run."""

import typer


def register(app: typer.Typer) -> None:
    # Imported here: other commands use parts of this package, and loading all of it is slow.
    from numalloc_tools.bench.command import app as bench

    app.add_typer(bench, name="bench")
