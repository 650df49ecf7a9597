"""`numalloc stat`, `top` and `exporter`: what processes do with the memory of the nodes, while they run."""

import typer

from numalloc_tools.observe.exporter_command import exporter
from numalloc_tools.observe.stat_command import stat
from numalloc_tools.observe.top_command import top


def register(app: typer.Typer) -> None:
    app.command("stat", no_args_is_help=True)(stat)
    app.command("top")(top)
    app.command("exporter")(exporter)


__all__ = ["register"]
