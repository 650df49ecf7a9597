"""The tools themselves in the guest: the interpreter, and the modules that commands of `numalloc` load."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import numalloc_tools

CODE = "from numalloc_tools.cli import main; main()"
SOURCES = str(Path(numalloc_tools.__file__).parents[1])
_LOADED = re.compile(rb"(/[^\s'\"]+\.(?:py|so))\b")


def command(*words: str) -> list[str]:
    return [sys.executable, "-c", CODE, *words]


def environment(**more: str) -> dict[str, str]:
    return {"PYTHONPATH": SOURCES, "PYTHONDONTWRITEBYTECODE": "1", **more}


@cache
def files() -> list[str]:
    """What Python says it loads for `numalloc run` here, each with its compiled form: far less than all of Python.
    A module that only the guest would load is missing there, and its test fails."""
    found: set[str] = set()
    for words in (["run", "--report", "--", "sleep", "0.2"], ["run", "--nonsense"], ["run", "--show", "--json", "-"]):
        told = os.environ | {"PYTHONPATH": SOURCES, "PYTHONVERBOSE": "1"}
        done = subprocess.run(command(*words), env=told, stdin=subprocess.DEVNULL, capture_output=True)
        found.update(os.fsdecode(path) for path in _LOADED.findall(done.stderr))
    found.update(map(str, Path(numalloc_tools.__file__).with_name("tables").glob("*.def")))
    found.update(str(path) for path in (Path(sys.prefix, "pyvenv.cfg"), Path(os.__file__)))
    found.update(_compiled(path) for path in list(found))
    return sorted(path for path in found if os.path.isfile(path))


def _compiled(source: str) -> str:
    path = Path(source)
    return str(path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc")
