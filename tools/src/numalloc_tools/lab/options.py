"""What several commands of the lab take alike."""

from typing import Annotated

import typer

PROGRAM = "The program"
Environment = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        "-e",
        help="A variable of the program's environment; NAME alone takes this machine's value. Repeatable.",
        metavar="NAME[=VALUE]",
        rich_help_panel=PROGRAM,
    ),
]
