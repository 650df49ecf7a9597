"""The folder for things that were fetched or built once."""

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
        raise Problem(f"the cache {path} cannot be created ({error.strerror}); name another with XDG_CACHE_HOME", 125) from None
    return path


def kept(folder: Path, fill: Callable[[Path], None]) -> Path:
    """The folder. If it does not exist, `fill` makes it under another name first: several labs may fetch at once, and none
    may see an incomplete folder."""
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
