"""Settings files in TOML."""

import sys
from pathlib import Path

from numalloc_tools.problem import Problem

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def content_of(path: Path, flag: str, accepted: str) -> dict:
    """`flag`: the option that named the file; `accepted`: the end of the message."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise Problem(f"{flag}: {path} cannot be read ({error.strerror}); accepted: {accepted}") from None
    except (ValueError, RecursionError) as error:
        raise Problem(f"{flag}: {path} is not TOML ({' '.join(str(error).split())}); accepted: {accepted}") from None
