"""`numalloc stat`, `top` and `exporter`: what processes do with the memory of the nodes, while they run."""

import typer


def register(app: typer.Typer) -> None:
    # Here, since other commands use parts of this package, and to load all of it takes long.
    from numalloc_tools.observe.exporter_command import exporter
    from numalloc_tools.observe.stat_command import stat
    from numalloc_tools.observe.top_command import top

    app.command("stat", no_args_is_help=True)(stat)
    app.command("top")(top)
    app.command("exporter")(exporter)
