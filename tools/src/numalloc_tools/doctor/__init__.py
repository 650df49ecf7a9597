"""`numalloc doctor`: what on a machine, in a container or in a program hurts, why, and how to mend it."""

import typer


def register(app: typer.Typer) -> None:
    # Here, since other commands use parts of this package, and to load all of it takes long.
    from numalloc_tools.doctor import command

    command.register(app)
