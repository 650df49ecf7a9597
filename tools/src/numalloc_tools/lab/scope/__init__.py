"""numascope: what the caches and memory of a machine with many nodes would see of a program. It runs in the lab, and
compares what bench compares."""

import typer

from numalloc_tools.lab.scope import command, figures_command


def register(app: typer.Typer) -> None:
    command.register(app)
    figures_command.register(app)
