"""`numalloc topology`: reads the machine, and shows it as text, as JSON or as a drawing."""

import json
from pathlib import Path
from typing import Annotated, Optional

import typer

from numalloc_tools.checks import require_folder
from numalloc_tools.machine import facts
from numalloc_tools.machine.files import rooted
from numalloc_tools.machine.terminal import console
from numalloc_tools.topology import text

NO_TERMINAL = 120  # columns without a terminal


def register(app: typer.Typer) -> None:
    app.command("topology")(topology)


def topology(
    as_json: Annotated[bool, typer.Option("--json", help="Print all facts as JSON.")] = False,
    svg: Annotated[Optional[Path], typer.Option(help="Draw the nodes and their distances into this file.", metavar="FILE")] = None,
    root: Annotated[
        Optional[Path], typer.Option(help="Read a copy of another machine's /sys and /proc in this folder.", metavar="FOLDER")
    ] = None,
) -> None:
    """Show memory nodes, CPUs, distances, huge pages, limits, and the system calls that are forbidden here."""
    files = rooted(root)
    require_folder(svg, "--svg")
    machine = facts.read(files)
    if svg:
        from numalloc_tools.topology import picture  # imported here: matplotlib takes a second to load

        svg.write_text(picture.svg(machine))
    if as_json:
        print(json.dumps(machine.as_json(), indent=1))
    elif not svg:
        text.show(machine, console(NO_TERMINAL))
