"""Debian's programs on this machine, where installed: starts them, generates their load, checks and stops them."""

import shutil
from types import ModuleType

from numalloc_tools.programs import REAL, Program
from numalloc_tools.programs.real import gcc, memcached, pbzip2, perl, postgres, python, redis, sqlite

_MODULES = (gcc, python, perl, pbzip2, sqlite, redis, memcached, postgres)


def programs() -> list[Program]:
    return [_program(module) for module in _MODULES]


def _program(module: ModuleType) -> Program:
    """NEEDS of a module names a package for each command; `found(command)` finds a command that is not in PATH."""
    find = getattr(module, "found", shutil.which)
    packages = sorted({package for command, package in module.NEEDS.items() if not find(command)})
    missing = f"not installed: apt install {' '.join(packages)}" if packages else ""
    return Program(
        module.NAME,
        module.FAMILY,
        module.DESCRIPTION,
        f"Debian's {', '.join(sorted(set(module.NEEDS.values())))}",
        module.THREADS,
        module.THREADS[len(module.THREADS) // 2],
        REAL,
        module.run,
        missing,
        module.QUICK,
        lab=getattr(module, "LAB", None),
    )
