"""The results of an earlier run are kept when a new run has the same name for its file."""

import itertools
import os
from pathlib import Path

from numalloc_tools.problem import Problem


def set_aside(path: Path) -> Path | None:
    """Renames the file that the run would replace, and returns its new name: results.json becomes results.1.json."""
    if not path.exists():
        return None
    names = (path.with_name(f"{path.stem}.{number}{path.suffix}") for number in itertools.count(1))
    free = next(name for name in names if not os.path.lexists(name))
    try:
        return path.rename(free)
    except OSError as error:
        raise Problem(f"--json: {path} cannot be renamed to {free.name} ({error.strerror}); accepted: another file") from None
