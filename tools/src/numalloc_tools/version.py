"""The output of `numalloc --version`."""

import subprocess
from pathlib import Path

from numalloc_tools import __version__

_PROJECT = Path(__file__).parents[3]


def line() -> str:
    known = commit()
    return f"numalloc {__version__}" + (f" ({known})" if known else "")


def commit(project: Path = _PROJECT) -> str:
    """The commit of the checkout that runs; empty for an installed package, or if git fails."""
    if not (project / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", str(project), "describe", "--always", "--dirty", "--exclude=*"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
