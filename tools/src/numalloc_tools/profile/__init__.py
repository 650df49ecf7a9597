"""`numalloc profile`: who allocates, on which nodes, and whose memory is remote."""

import typer


def register(app: typer.Typer) -> None:
    # Here, since other commands use parts of this package, and to load all of it takes long.
    from numalloc_tools.profile import command

    command.register(app)
