"""What numalloc lab figures has found of the promises, from the page that it wrote."""

import re
from dataclasses import dataclass
from pathlib import Path

from numalloc_tools.problem import Problem

_KEPT, _MISSED = "Kept in all of them.", re.compile(r"Not kept: ([^.]+)\.")


@dataclass(frozen=True)
class Promises:
    way: str  # from the text that names them to that page
    missed: tuple[str, ...]  # programs


def read(path: Path, way: str) -> Promises:
    try:
        text = " ".join(path.read_text().split())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise Problem(f"--scope: {path} cannot be read ({reason}); accepted: what numalloc lab figures has written") from None
    missed = _MISSED.search(text)
    if not missed and _KEPT not in text:
        raise Problem(f"--scope: {path} says nothing of promises; accepted: what numalloc lab figures has written")
    return Promises(way, tuple(missed[1].split(", ")) if missed else ())
