"""`numalloc profile`: runs a program and shows its heap profile, or shows an existing one."""

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.console import Console

from numalloc_tools.allocators.found import hardened
from numalloc_tools.checks import require_folder, require_least
from numalloc_tools.completion import one_of
from numalloc_tools.launch import program
from numalloc_tools.preload import our_library
from numalloc_tools.problem import Problem
from numalloc_tools.profile import files, flame, report
from numalloc_tools.profile.names import add_names
from numalloc_tools.profile.proto import Profile
from numalloc_tools.profile.recording import record
from numalloc_tools.profile.samples import VIEWS, View, lost_records, samples, without_stacks

TABLE_WIDTH = 110  # the width without a terminal
BY = ("function", "stack", "place")


def register(app: typer.Typer) -> None:
    app.command("profile", context_settings={"allow_interspersed_args": False})(profile)


def profile(
    command: Annotated[
        Optional[list[str]], typer.Argument(help="The program and its arguments, after --.", metavar="-- PROGRAM ARGS")
    ] = None,
    sample: Annotated[str, typer.Option(help="Average number of bytes per record; 1 records every allocation.", metavar="SIZE")] = "512K",
    live: Annotated[bool, typer.Option("--live", help="Show the memory in use when the profile was written.")] = False,
    allocated: Annotated[bool, typer.Option("--allocated", help="Show all allocations (default).")] = False,
    leaked: Annotated[bool, typer.Option("--leaked", help="Show the memory still in use when the program ended.")] = False,
    by: Annotated[
        str, typer.Option(help=f"Group the lines of the table by: {', '.join(BY)} (of nodes).", autocompletion=one_of(*BY))
    ] = "function",
    rows: Annotated[int, typer.Option(help="Number of lines per table.")] = 20,
    output: Annotated[
        Optional[Path],
        typer.Option("--output", "-o", help="Keep the profile in this file, with function names; pprof can open it.", metavar="FILE"),
    ] = None,
    flame_file: Annotated[
        Optional[Path], typer.Option("--flame", help="Draw a flame graph (SVG, for a browser) into this file.", metavar="FILE")
    ] = None,
    on_signal: Annotated[
        bool, typer.Option("--on-signal", help="Also show the profile if Ctrl-C, SIGTERM or SIGHUP ends the program.")
    ] = False,
    show: Annotated[
        Optional[Path], typer.Option(help="Show the profile in this file (-: standard input), and run nothing.", metavar="FILE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; the program's own output then goes to standard error.")] = False,
    library: Annotated[
        Optional[Path], typer.Option(help="The libnumalloc.so to preload. Default: the one built here or above, or installed.")
    ] = None,
) -> None:
    """Run a program and show which functions allocate how much, on which nodes, and whose memory is remote.

    The report goes to standard error; standard output is the program's own. The exit status is the program's; 2 if
    something is missing or misspelt, and 127 if the program was not found.
    """
    view = _view(live, allocated, leaked)
    words = _check(command, sample, by, rows, show)
    if output is not None and flame_file is not None and output.absolute() == flame_file.absolute():
        raise Problem(f"--output, --flame: both are {output}; accepted: two files")
    for option, path in (("--output", output), ("--flame", flame_file)):
        require_folder(path, option)
    if show:
        _report([files.shown(show)], view, by, rows, output, flame_file, as_json, sys.stdout)
        return
    with tempfile.TemporaryDirectory(prefix="numalloc-profile-") as folder:
        preloaded = our_library(library or hardened(os.environ.get("LD_PRELOAD", "")))
        recording = record(words, preloaded, sample, Path(folder), sys.stderr if as_json else None, on_signal)
        if not recording.files:
            found = program.obstacle(program.find(words[0]), preloaded)
            reason = found.reason if found else "it ran no malloc, or did not end by exit()"
            raise Problem(
                f"{words[0]} left no profile (exit status {recording.exit_status}): {reason}; accepted: a dynamic program that ends "
                "by exit() (--on-signal: or by a signal)",
                recording.exit_status or 2,
            )
        _report(
            [files.read(path) for path in recording.files],
            view,
            by,
            rows,
            output,
            flame_file,
            as_json,
            sys.stdout if as_json else sys.stderr,
        )
    raise typer.Exit(recording.exit_status)


def _view(live: bool, allocated: bool, leaked: bool) -> View:
    if live + allocated + leaked > 1:
        raise Problem("--live, --allocated, --leaked: more than one is given; accepted: one of them")
    return VIEWS["live" if live else "leaked" if leaked else "allocated"]


def _check(command: list[str] | None, sample: str, by: str, rows: int, show: Path | None) -> list[str]:
    """The program and its arguments; empty with --show."""
    if bool(command) == bool(show):
        what = "both a program and --show are given" if command else "no program is given"
        raise Problem(f"{what}; accepted: `numalloc profile -- PROGRAM ARGS`, or `numalloc profile --show FILE`")
    number = re.fullmatch(r"([0-9]+)([KkMmGg]?)(B|iB)?", sample)
    amount = int(number[1]) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[number[2].upper()] if number else 0
    if not 1 <= amount <= 2**30:
        raise Problem(f"--sample: '{sample}' is not understood; accepted: 1 to 1G bytes, such as 64K, 512K or 4M")
    if by not in BY:
        raise Problem(f"--by: '{by}' is unknown; accepted: {', '.join(BY)}")
    require_least(rows, "--rows")
    return command or []


def _report(
    profiles: list[Profile], view: View, by: str, rows: int, output: Path | None, flame_file: Path | None, as_json: bool, stream
) -> None:
    whole = files.merged(profiles)
    changed = add_names(whole)
    found = samples(whole, view)
    notes = [f"{path} has changed since it ran: its functions have no names" for path in changed]
    if len(profiles) > 1:
        notes.append(f"{len(profiles)} processes, merged")
    if lost := lost_records(whole):
        notes.append(f"{lost} records were lost: there was no memory for them")
    if without_stacks(whole):
        notes.append("the profile has no stacks: libgcc_s.so.1 was not in the process")
    missing = []
    drawn = flame.svg(found, view.title) if flame_file else ""
    for option, path, write, note in (
        ("--output", output, lambda path: files.write(whole, path), f"the profile is in {output}: pprof {output}"),
        ("--flame", flame_file, lambda path: path.write_text(drawn), f"the flame graph is in {flame_file}"),
    ):
        if path is None:
            continue
        try:
            write(path)
            notes.append(note)
        except OSError as error:  # the report is shown all the same
            missing.append(Problem(f"{option}: {path} cannot be written ({error.strerror}); accepted: a writable file"))
    if as_json:
        json.dump(report.as_data(found, view, rows, notes), stream, indent=2)
        stream.write("\n")
    else:
        terminal = Console(file=stream)
        if not stream.isatty():
            terminal.width = max(terminal.width, TABLE_WIDTH)
        report.print_report(terminal, found, view, by, rows, notes)
    if missing:
        raise missing[0]
