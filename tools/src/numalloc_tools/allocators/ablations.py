"""Variants of numalloc for --ablations: each turns off or changes one mechanism, by an option of the library's table."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.options_table import Option, parsed
from numalloc_tools.problem import Problem

# Options for users that the studies also vary, in addition to the options for experiments.
_STUDIED = ("binding", "memory_binding", "interleave", "thp")
_NEEDS_MORE = {"file"}  # values that need another option
_SIZE, _SHIFTS = re.compile(r"(\d+)([KMGT]?)"), {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def table(library: Path) -> tuple[Option, ...]:
    """The options in the sources that the library was built from, or in the headers installed with it."""
    for folder in library.parents:
        for place in ("include/numalloc/options.def", "include/options.def"):
            if (path := folder / place).is_file():
                return parsed(path.read_text())
    raise Problem(f"numalloc/options.def is in no include folder above {library}; --ablations needs it")


def compared(ours: Allocator) -> list[Allocator]:
    """numalloc with its defaults, then one variant for each studied option and each value other than the default."""
    library = with_experiments(ours.libraries[0])
    ours = replace(ours, libraries=(library, *ours.libraries[1:]))
    found = [ours]
    for option in table(library):
        if option.name in _STUDIED or option.experiment:
            found += [
                replace(ours, name=f"{ours.name}:{option.name}={value}", options={option.name: value}) for value in _values(option, library)
            ]
    return found


def with_experiments(library: Path) -> Path:
    """The library itself if it has the options for experiments, otherwise build/experiments/libnumalloc.so of its tree."""
    names = [option.name for option in table(library) if option.experiment]
    if not names:
        raise Problem(f"the table of options beside {library} has no options for experiments")
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
    """The accepted values, from the library's own message about a wrong value."""
    environment = {"LD_PRELOAD": str(library), f"NUMALLOC_{name.upper()}": "?", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["sort", "/dev/null"], env=environment, capture_output=True, text=True)
    match = re.search(r"accepted: (.*?)\. Using ", done.stderr)
    return [word.strip() for word in match[1].split(",")] if match else []
