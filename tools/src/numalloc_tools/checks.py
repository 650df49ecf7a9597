"""Checks of options for many commands, made before a run whose result would be lost."""

import os
from pathlib import Path

from numalloc_tools.problem import Problem


def require_folder(path: Path | None, flag: str, replaced: bool = False) -> None:
    """`replaced`: the file is not written but replaced, so its folder must be writable."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir():
        raise Problem(f"{flag}: the folder of {path} does not exist; accepted: a file in an existing folder")
    if path.is_dir():
        raise Problem(f"{flag}: {path} is a folder; accepted: a file")
    if replaced and path.exists() and not path.is_file():
        raise Problem(f"{flag}: {path} is a device or pipe, which the results would replace; accepted: a file")
    if not os.access(folder if replaced or not path.exists() else path, os.W_OK):
        raise Problem(f"{flag}: {path} cannot be written; accepted: a file that can, or a new one in a folder that can be written to")


def require_least(number: int | None, flag: str, least: int = 1) -> None:
    if number is not None and number < least:
        raise Problem(f"{flag}: {number} is too few; accepted: {least} or more")


def text_of(path: Path | None, flag: str) -> str:
    try:
        return path.read_text() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise Problem(f"{flag}: {path} cannot be read ({reason}); accepted: a text file") from None
