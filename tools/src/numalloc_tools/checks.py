"""What many commands ask of their options, before anything is run whose result would be lost."""

from pathlib import Path

from numalloc_tools.problem import Problem


def require_folder(path: Path | None, flag: str) -> None:
    if path and not path.absolute().parent.is_dir():
        raise Problem(f"{flag}: the folder of {path} does not exist; accepted: a file in a folder that does")


def require_least(number: int | None, flag: str, least: int = 1) -> None:
    if number is not None and number < least:
        raise Problem(f"{flag}: {number} is too few; accepted: {least} or more")
