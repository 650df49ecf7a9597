"""From a command line to the ELF programs that run: names, scripts, their interpreters, `env`."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from numalloc_tools.doctor import elf
from numalloc_tools.problem import Problem

_MOST_INTERPRETERS = 5  # the kernel's own limit
_START = 4096
_STRIPS = re.compile(rb"^[^#\n]*(?:\bunset\s+(?:-v\s+)?LD_PRELOAD\b|\benv\s+(?:-i|-|--ignore-environment)\s|\bLD_PRELOAD=)", re.MULTILINE)
_MOST_OF_SCRIPT = 1 << 20


@dataclass(frozen=True)
class Invocation:
    scripts: list[Path]  # the first to the last script
    program: Path  # ELF
    strips: str | None  # a line of a script that removes or changes LD_PRELOAD


def resolve(name: str) -> Invocation:
    path = find(name)
    scripts: list[Path] = []
    strips = None
    while True:
        start = _start(path)
        if elf.is_elf(start):
            return Invocation(scripts, path, strips)
        if not start.startswith(b"#!"):
            raise Problem(f"{path} is neither an ELF program nor a script with #!; accepted: a program")
        if len(scripts) >= _MOST_INTERPRETERS:
            raise Problem(f"{name}: its interpreters are an endless chain of scripts; accepted: a program")
        scripts.append(path)
        strips = strips or _stripping_line(path)
        words = start[2:].split(b"\n")[0].decode(errors="replace").split()
        if not words:
            raise Problem(f"{path}: its first line names no interpreter; accepted: a line such as #!/bin/sh")
        path = _interpreter(path, words)


def find(name: str) -> Path:
    if "/" not in name:
        found = shutil.which(name)
        if not found:
            raise Problem(f"{name or '(no name)'}: there is no such program in PATH", 127)
        return Path(found)
    path = Path(name)
    if not path.exists():
        raise Problem(f"{name}: there is no such program", 127)
    if not path.is_file() or not os.access(path, os.X_OK):
        raise Problem(f"{name} cannot be executed; accepted: a program")
    return path


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_START)
    except OSError as error:
        raise Problem(f"{path} cannot be read ({error.strerror}); accepted: a readable program") from None


def _interpreter(script: Path, words: list[str]) -> Path:
    if os.path.basename(words[0]) == "env":
        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        if named:
            found = shutil.which(named[0])
            if not found:
                raise Problem(f"{script}: its interpreter {named[0]} is not in PATH", 127)
            return Path(found)
    if not os.path.isfile(words[0]):
        raise Problem(f"{script}: its interpreter {words[0]} does not exist", 127)
    return Path(words[0])


def _stripping_line(script: Path) -> str | None:
    with script.open("rb") as file:
        match = _STRIPS.search(file.read(_MOST_OF_SCRIPT))
    return match[0].decode(errors="replace").strip() if match else None
