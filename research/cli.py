"""The commands of research/: a table of them, each of which lives in its own package."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import typer
from numalloc_tools import cli

# Each command, and the package that brings it.
COMMANDS = {
    "bundle": "bundle",
    "doctor": "scope",
    "figures": "scope",
    "paper": "paper",
    "prove": "proof",
    "read-bundle": "bundle",
    "scope": "scope",
}


def made(words: Sequence[str] = ()) -> typer.Typer:
    app = cli.table_of_commands("Repeats papers, and models the memory of machines with many nodes.", completion=False)
    for package in cli.packages(COMMANDS, words):
        import_module(f"research.{package}").register(app)
    return app


def main() -> None:
    cli.run(made)


def own_command() -> list[str]:
    return [sys.executable, str(Path(__file__).parent)]
