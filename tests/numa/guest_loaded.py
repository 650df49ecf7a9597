"""The `numalloc` command in a virtual machine: this Python, and of its libraries what the command loads."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numalloc_tools

_SOURCE = Path(numalloc_tools.__file__).parent
# -S in the guest: what site would look for does not go along. So its paths are given by hand.
_START = "import sys; sys.path += {paths!r}; from numalloc_tools.cli import main; main()"
_LOADED = """
import os, sys
from numalloc_tools.cli import main
sys.argv[1:] = [str(os.getpid()) if word == "PID" else word for word in sys.argv[1:]]
try:
    main()
except SystemExit as end:
    if end.code: raise
for module in list(sys.modules.values()):
    for path in (getattr(module, "__file__", None), getattr(module, "__cached__", None)):
        if path and os.path.isfile(path): print(path, file=sys.stderr)
"""


def command(*arguments: str) -> list[str]:
    paths = [path for path in sys.path if os.path.isdir(path)]
    return [sys.executable, "-S", "-c", _START.format(paths=[*paths, str(_SOURCE.parent)]), *arguments]


@cache
def files(*arguments: str) -> tuple[str, ...]:
    """The files that the command loads here, it will load there. PID stands for a process."""
    done = subprocess.run([sys.executable, "-c", _LOADED, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    settings = Path(sys.executable).parent.with_name("pyvenv.cfg")
    found = [path for path in done.stderr.splitlines() if os.path.isabs(path)]
    return (*found, str(_SOURCE / "tables"), *([str(settings)] if settings.is_file() else []))
