"""The tools themselves in the guest: this Python, and of its libraries what commands of `numalloc` load."""

import importlib.util
import os
import py_compile
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

import numalloc_tools

SOURCES = str(Path(numalloc_tools.__file__).parents[1])
CODE = f"import sys; sys.path.insert(0, {SOURCES!r}); sys.dont_write_bytecode = True; from numalloc_tools.cli import main; main()"
_LOADED = re.compile(rb"(/[^\s'\"]+\.(?:py|so))\b")
_ALWAYS = ("rich",)  # which goes by its terminal, and the guest has another


def command(*words: str) -> list[str]:
    return [sys.executable, "-c", CODE, *words]


def files(*commands: Sequence[str], packages: Sequence[str] = ()) -> list[str]:
    """What Python says it loads for these commands here, each file with its compiled form: far less than all of Python.
    A module that only the guest would load is missing there, and its test fails. `packages` go whole: they have data, or
    load what they need when they need it."""
    found = {path for words in commands for path in _loaded(tuple(words))}
    found.update(map(str, Path(numalloc_tools.__file__).with_name("tables").iterdir()))
    found.update(str(path) for path in (Path(sys.prefix, "pyvenv.cfg"), Path(os.__file__)))
    for name in (*_ALWAYS, *packages):
        found.update(str(file.locate()) for file in metadata.files(name) or [] if "tests" not in file.parts)
    found.update(_compiled(path) for path in list(found) if path.endswith(".py"))
    return sorted(path for path in found if os.path.isfile(path))


@cache
def _loaded(words: tuple[str, ...]) -> frozenset[str]:
    with tempfile.TemporaryDirectory() as folder:
        # With a cache that is as empty as the guest's.
        told = os.environ | {"PYTHONVERBOSE": "1", "MPLCONFIGDIR": folder}
        done = subprocess.run(command(*words), cwd=folder, env=told, stdin=subprocess.DEVNULL, capture_output=True)
    return frozenset(os.fsdecode(path) for path in _LOADED.findall(done.stderr))


def _compiled(source: str) -> str:
    """Made here where it is missing or old: the guest would translate the source for each command anew, which takes it as
    long as the command itself."""
    compiled = importlib.util.cache_from_source(source)
    with suppress(OSError, py_compile.PyCompileError):
        if not os.path.exists(compiled) or os.path.getmtime(compiled) < os.path.getmtime(source):
            py_compile.compile(source, doraise=True)
    return compiled
