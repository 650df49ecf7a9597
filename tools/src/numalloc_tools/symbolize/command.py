"""`numalloc symbolize`: adds function names to the reports in a program's standard error."""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Optional

import typer

from numalloc_tools.machine.words import printable
from numalloc_tools.problem import Problem
from numalloc_tools.symbols import Name, names_in

# As src/heap/profile/say_stack.cpp writes it.
_FRAME = re.compile(r"(?P<start>numalloc:     #\d+ )0x[0-9a-f]+ (?P<path>/.*)\+0x(?P<offset>[0-9a-f]+)$")


def register(app: typer.Typer) -> None:
    app.command("symbolize")(symbolize)


def symbolize(
    file: Annotated[
        Optional[Path], typer.Argument(help="The program's standard error, saved in a file. Default: standard input.", metavar="FILE")
    ] = None,
) -> None:
    """Show a report of NUMALLOC_GUARDED or NUMALLOC_BACKTRACE with the functions and lines of its stacks.

    All other lines are unchanged. The program's files must be the ones that ran.
    """
    for line in named(_text(file).splitlines()):
        print(line)


def named(lines: list[str]) -> Iterator[str]:
    """The lines, with names instead of addresses where the files have them; one line for each inlined function."""
    frames = [_FRAME.match(line) for line in lines]
    wanted = defaultdict(set)
    for one in filter(None, frames):
        wanted[one["path"]].add(int(one["offset"], 16))
    names = {path: names_in(path, sorted(offsets)) for path, offsets in wanted.items()}
    for line, frame in zip(lines, frames):
        found = names[frame["path"]].get(int(frame["offset"], 16), []) if frame else []
        if frame is None or not found:
            yield line
            continue
        for name in found:
            yield frame["start"] + _words(name, frame["path"])


def _words(name: Name, path: str) -> str:
    place = f"{name.file}:{name.line}" if name.file and name.line else path
    return printable(f"{name.function} ({place})")


def _text(file: Path | None) -> str:
    if file is None:
        return sys.stdin.buffer.read().decode(errors="replace")
    if not file.is_file():
        raise Problem(f"{file} is not a file; accepted: a file with a program's standard error")
    return file.read_bytes().decode(errors="replace")
