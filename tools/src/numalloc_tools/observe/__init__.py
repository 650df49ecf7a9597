"""`numalloc stat`, `top` and `exporter`: where the memory of running processes is."""

import typer


def register(app: typer.Typer) -> None:
    # Imported here: other commands use parts of this package, and loading all of it is slow.
    from numalloc_tools.observe.exporter_command import exporter
    from numalloc_tools.observe.stat_command import stat
    from numalloc_tools.observe.top_command import top

    app.command("stat", no_args_is_help=True)(stat)
    app.command("top")(top)
    app.command("exporter")(exporter)
