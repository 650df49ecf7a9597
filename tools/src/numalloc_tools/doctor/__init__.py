"""`numalloc doctor`: finds problems of a machine, a container or a program, with their reasons and remedies."""

import typer


def register(app: typer.Typer) -> None:
    # Imported here: other commands use parts of this package, and loading all of it is slow.
    from numalloc_tools.doctor import command

    command.register(app)
