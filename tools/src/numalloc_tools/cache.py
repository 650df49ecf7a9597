"""Where things that were fetched or built once are kept."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from numalloc_tools.problem import Problem


def directory(*parts: str) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = Path(base, "numalloc", *parts)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem(f"the cache {path} cannot be made ({error.strerror}); name another with XDG_CACHE_HOME", 125) from None
    return path


def kept(folder: Path, fill: Callable[[Path], None]) -> Path:
    """The folder. Where it is not there yet `fill` makes it, under another name: several labs may be fetching at once,
    and none sees a half of it."""
    if folder.is_dir():
        return folder
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as work:
        content = Path(work, "content")
        fill(content)
        try:
            os.rename(content, folder)
        except OSError:
            if not folder.is_dir():
                raise
    return folder
