"""`numalloc lab`: a NUMA machine on every desk."""

import typer


def register(app: typer.Typer) -> None:
    # Here, since other commands use parts of the lab, and to load all of it takes long.
    from numalloc_tools.lab import run_command

    lab = typer.Typer(help="Boot a virtual NUMA machine and run programs in it.", no_args_is_help=True)
    run_command.register(lab)
    app.add_typer(lab, name="lab")
