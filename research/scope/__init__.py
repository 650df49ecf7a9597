"""numascope: what the caches and memory of a machine with many nodes would see of a program. It runs in the lab, and
compares what bench compares."""

import typer

from research.scope import command, doctor, figures_command


def register(app: typer.Typer) -> None:
    command.register(app)
    doctor.register(app)
    figures_command.register(app)
