"""Where things that were fetched or built once are kept."""

import os
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
