"""The dynamic loader's behaviour for a program and a preloaded library. The loader loads and binds everything, reports it,
and ends before the first instruction of the program: nothing of the program runs."""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_PATIENCE = 60.0  # seconds; a large program has several hundred thousand symbols
_BINDING = re.compile(r"binding file (.+?) \[\d+\] to (.+?) \[\d+\]: \w+ symbol `(\w+)'")
_LOADED = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_COMPLAINT = re.compile(r"^ERROR: ld\.so: (.+?)(?:: ignored)?\.$", re.MULTILINE)
_MISSING = re.compile(r"^\s*(\S+) => not found$", re.MULTILINE)
ALLOCATES = ("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign")
OPERATORS = ("_Znwm", "_ZdlPv")
GLIBC = re.compile(r"ld-linux[-\w]*\.so\.\d+|ld64\.so\.\d+")


# Folders to which only root can write. A loader elsewhere may be any program, and asking it would run it.
_SYSTEM = ("/lib", "/usr/", "/nix/store/", "/gnu/store/")


def is_the_systems(interpreter: str) -> bool:
    return os.path.realpath(interpreter).startswith(_SYSTEM)


@dataclass(frozen=True)
class Bound:
    loaded: list[str]
    leads: dict[str, dict[str, str]] = field(default_factory=dict)  # by file, by name: the file that defines it
    complaints: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def leads_of(self, library: Path, names: tuple[str, ...]) -> dict[str, dict[str, str]]:
        """For each file that calls one of the names: the calls that do not lead to the library."""
        ours = str(library)
        found = {}
        for file, targets in self.leads.items():
            stray = {name: target for name, target in targets.items() if name in names and not same(target, ours)}
            if stray and not same(file, ours):
                found[file] = stray
        return found

    def served(self, library: Path) -> list[str]:
        ours = str(library)
        return [
            file
            for file, targets in self.leads.items()
            if not same(file, ours) and any(same(targets.get(name, ""), ours) for name in ALLOCATES)
        ]


def same(one: str, other: str) -> bool:
    return bool(one) and bool(other) and os.path.realpath(one) == os.path.realpath(other)


def asked(interpreter: str, program: Path, preload: str, environment: Mapping[str, str]) -> Bound:
    own = {name: value for name, value in environment.items() if not name.startswith("LD_") or name == "LD_LIBRARY_PATH"}
    told = {"LD_PRELOAD": preload, "LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "yes", "LD_BIND_NOW": "yes", "LD_DEBUG": "bindings"}
    try:
        done = subprocess.run(
            [interpreter, os.path.realpath(program)],
            env=own | told,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Bound([], complaints=[f"{interpreter} did not answer: {error}"])
    stdout, stderr = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    leads: dict[str, dict[str, str]] = {}
    for file, target, name in _BINDING.findall(stderr):
        if name in ALLOCATES or name in OPERATORS:
            leads.setdefault(file, {})[name] = target
    complaints = _COMPLAINT.findall(stderr)
    if done.returncode and not _LOADED.search(stdout):
        complaints += [line.strip() for line in stderr.splitlines() if line.strip() and "binding file" not in line][:1]
    return Bound(_LOADED.findall(stdout), leads, complaints, _MISSING.findall(stdout))
