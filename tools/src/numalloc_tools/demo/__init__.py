"""`numalloc demo`: numalloc beside glibc's malloc and jemalloc, on many nodes and on this machine."""

import typer


def register(app: typer.Typer) -> None:
    # Here, since other commands use parts of this package, and to load all of it takes long.
    from numalloc_tools.demo import command

    command.register(app)
