"""`numalloc lab`: a NUMA machine on every desk, and the proof that memory is local."""

import typer

from numalloc_tools.lab import prove_command, run_command

app = typer.Typer(help="Boot a virtual NUMA machine and run programs in it.", no_args_is_help=True)
run_command.register(app)
prove_command.register(app)
