"""Checks of options for many commands, made before a run whose result would be lost."""

import os
from pathlib import Path

from numalloc_tools.problem import Problem


def require_folder(path: Path | None, flag: str) -> None:
    if path and not path.absolute().parent.is_dir():
        raise Problem(f"{flag}: the folder of {path} does not exist; accepted: a file in an existing folder")
    if path and (path.is_dir() or not os.access(path.absolute().parent, os.W_OK | os.X_OK)):
        raise Problem(f"{flag}: {path} cannot be written; accepted: a file in a folder that can be written to")


def require_least(number: int | None, flag: str, least: int = 1) -> None:
    if number is not None and number < least:
        raise Problem(f"{flag}: {number} is too few; accepted: {least} or more")


def text_of(path: Path | None, flag: str) -> str:
    try:
        return path.read_text() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise Problem(f"{flag}: {path} cannot be read ({reason}); accepted: a text file") from None
