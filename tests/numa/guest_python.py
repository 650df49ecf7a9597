"""The tools themselves in the guest: the interpreter, and the modules that commands of `numalloc` load."""

import os
import re
"""The `numalloc` command in a virtual machine: this Python, and of its libraries what the command loads."""
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
def files(*arguments: str) -> tuple[str, ...]:
    """The files that the command loads here, it will load there. PID stands for a process."""
    environment = os.environ | {"PYTHONPATH": str(_SOURCE.parent)}
    done = subprocess.run([sys.executable, "-c", _LOADED, *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    settings = Path(sys.executable).parent.with_name("pyvenv.cfg")
    found = [path for path in done.stderr.splitlines() if os.path.isabs(path)]
    return (*found, str(_SOURCE / "tables"), *([str(settings)] if settings.is_file() else []))
