"""The results of an earlier run are kept when a new run has the same name for its file."""

import itertools
from pathlib import Path

from numalloc_tools.problem import Problem


def set_aside(path: Path) -> Path | None:
    """Renames the file that the run would replace, and returns its new name: results.json becomes results.1.json."""
    if not path.exists():
        return None
    free = next(other for number in itertools.count(1) if not (other := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists())
    try:
        return path.rename(free)
    except OSError as error:
        raise Problem(f"--json: {path} cannot be renamed to {free.name} ({error.strerror}); accepted: another file") from None
