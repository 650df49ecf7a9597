"""`numalloc profile`: shows which functions allocate, on which nodes, and whose memory is remote."""

import typer


def register(app: typer.Typer) -> None:
    # Imported here: other commands use parts of this package, and loading all of it is slow.
    from numalloc_tools.profile import command

    command.register(app)
