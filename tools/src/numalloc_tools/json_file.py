"""Reads JSON files that another command has written: they may be truncated, changed, or another file altogether."""

import json
from pathlib import Path

from numalloc_tools.problem import Problem


def object_in(path: Path, before: str, accepted: str) -> dict:
    """`before`: how the message begins; `accepted`: how it ends."""
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise Problem(f"{before}{error.strerror}; {accepted}") from None
    except (ValueError, RecursionError):
        raise Problem(f"{before}it is not JSON; {accepted}") from None
    if not isinstance(found, dict):
        raise Problem(f"{before}it is not a JSON object; {accepted}")
    return found
