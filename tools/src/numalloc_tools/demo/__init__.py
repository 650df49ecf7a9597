"""`numalloc demo`: a real program under glibc's malloc and under numalloc, side by side."""

import typer


def register(app: typer.Typer) -> None:
    # Here, since other commands use parts of this package, and to load all of it takes long.
    from numalloc_tools.demo import command

    command.register(app)
