"""numalloc with one mechanism off or changed, for each option that its own table has to offer."""

import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.problem import Problem

_OPTION = re.compile(r'^NUMALLOC_(LIVE_|EXPERIMENT_|)OPTION\((\w+),\s*(\w+),\s*([^,]+?),\s*"((?:[^"\\]|\\.)*)"\)', re.M)
# What users set too and the studies changed, beside the table's own options for experiments.
_STUDIED = ("binding", "memory_binding", "interleave", "thp")
_NEEDS_MORE = {"file"}  # values that do nothing alone
_SIZE, _SHIFTS = re.compile(r"(\d+)([KMGT]?)"), {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


@dataclass(frozen=True)
class Option:
    group: str  # the word in its macro's name
    name: str
    kind: str
    default: str
    what: str


def table(library: Path) -> list[Option]:
    """The options of the sources that the library was built from, or of the headers it was installed with."""
    for folder in library.parents:
        for place in ("include/numalloc/options.def", "include/options.def"):
            if (path := folder / place).is_file():
                return [Option(*match) for match in _OPTION.findall(path.read_text())]
    raise Problem(f"numalloc/options.def is in no include folder above {library}; --ablations needs it")


def compared(ours: Allocator) -> list[Allocator]:
    """numalloc with the options for experiments, then one allocator for each option and value that is not the default."""
    library = with_experiments(ours.libraries[0])
    ours = replace(ours, libraries=(library, *ours.libraries[1:]))
    found = [ours]
    for option in table(library):
        if option.name in _STUDIED or option.group == "EXPERIMENT_":
            found += [
                replace(ours, name=f"{ours.name}:{option.name}={value}", options={option.name: value}) for value in _values(option, library)
            ]
    return found


def with_experiments(library: Path) -> Path:
    """The library itself if it reads the options for experiments, else the one of build/experiments in its tree."""
    names = [option.name for option in table(library) if option.group == "EXPERIMENT_"]
    if not names:
        raise Problem(f"the options of {library} have no experiments")
    for one in (library, *(folder / "build/experiments/libnumalloc.so" for folder in library.parents)):
        if one.is_file() and _accepted(names[0], one):
            return one
    raise Problem(
        f"{library} has no options for experiments; build one that has them with "
        "cmake --preset experiments && cmake --build --preset experiments, or name it with --library"
    )


def _values(option: Option, library: Path) -> list[str]:
    accepted = _accepted(option.name, library)
    if {"on", "off"} <= set(accepted) and {"yes", "no"} & set(accepted):
        return ["0" if option.default in ("1", "on", "yes") else "1"]
    if match := _SIZE.fullmatch(option.default):
        size = int(match[1]) << _SHIFTS[match[2]]
        return [str(size // 4), str(size // 16)] if size >= 16 else []
    return [word for word in accepted if re.fullmatch(r"[\w-]+", word) and word != option.default and word not in _NEEDS_MORE]


def _accepted(name: str, library: Path) -> list[str]:
    """The library itself says so when it is given nonsense."""
    environment = {"LD_PRELOAD": str(library), f"NUMALLOC_{name.upper()}": "?", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["sort", "/dev/null"], env=environment, capture_output=True, text=True)
    match = re.search(r"accepted: (.*?)\. Using ", done.stderr)
    return [word.strip() for word in match[1].split(",")] if match else []
