"""Reads a file of [[program]]s, and reports an error in one line."""

import pwd
import shutil
from pathlib import Path

from numalloc_tools.bench.manifest.keys import TABLE
from numalloc_tools.bench.manifest.run import Recipe
from numalloc_tools.machine.words import printable
from numalloc_tools.problem import Problem
from numalloc_tools.programs import BROUGHT, Program
from numalloc_tools.toml_file import content_of

_FLAG = "--programs"


def programs(paths: list[Path], taken: set[str]) -> list[Program]:
    """`taken`: names that other programs have."""
    found: list[Program] = []
    for path in paths:
        content = content_of(path, _FLAG, "a file with a [[program]] for each program, see docs/programs.md")
        rows = content.pop("program", None)
        if content or not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
            what = f"'{printable(next(iter(content)))}' is unknown" if content else "no program is in it"
            raise Problem(f"{_FLAG}: {path}: {what}; accepted: a [[program]] for each program")
        for number, row in enumerate(rows, 1):
            one = _recipe(path, number, row)
            if one.name in taken:
                raise Problem(f"{_FLAG}: {path}: '{one.name}' is not free; accepted: a name of its own")
            taken.add(one.name)
            found.append(_program(one))
    return found


def _recipe(path: Path, number: int, row: dict) -> Recipe:
    name = row.get("name")
    where = f"{_FLAG}: {path}: {printable(name) if isinstance(name, str) and name else f'program {number}'}"
    for key, value in row.items():
        if key not in TABLE:
            raise Problem(f"{where}: '{printable(key)}' is unknown; accepted: {', '.join(TABLE)}")
        if not TABLE[key].good(value):
            raise Problem(f"{where}: {key} is {value!r}; accepted: {TABLE[key].accepted}")
    if "name" not in row:
        raise Problem(f"{where}: the name is missing; accepted: {TABLE['name'].accepted}")
    if ("command" in row) == ("server" in row):
        raise Problem(f"{where}: {'both' if 'command' in row else 'neither'} of command and server; accepted: one of the two")
    for key in ("ready", "load"):
        if (key in row) != ("server" in row):
            raise Problem(
                f"{where}: {key} {'is missing' if 'server' in row else 'is for a server'}; accepted: server, ready and load together"
            )
    if row.get("metric") == "json" and "server" in row:
        raise Problem(f"{where}: metric is 'json', but the load of a server prints no JSON; accepted: wall, seconds or rate")
    if "check" not in row and "verify" not in row and row.get("metric") != "json":
        raise Problem(f"{where}: without check and verify nobody knows whether its data were right; accepted: check, verify or both")
    if strange := set(row.get("paper", {})) ^ set(row.get("sizes", {})) if "paper" in row else set():
        raise Problem(f"{where}: '{min(strange)}' is only in one of sizes and paper; accepted: the same names in both")
    return Recipe(path.absolute().parent, **{key: row.get(key, one.standard) for key, one in TABLE.items()})


def _program(one: Recipe) -> Program:
    numbers = tuple(one.threads)
    return Program(
        one.name,
        one.family,
        one.description,
        one.source,
        numbers,
        numbers[len(numbers) // 2],
        BROUGHT,
        one.run,
        _missing(one),
        one.quick,
        paper=bool(one.paper),
        packages=tuple(sorted(set(one.needs.values()))),
    )


def _missing(one: Recipe) -> str:
    packages = sorted({package for command, package in one.needs.items() if not _there(command)})
    if packages:
        return f"not installed: apt install {' '.join(packages)}"
    try:
        if one.user:
            pwd.getpwnam(one.user)
    except KeyError:
        return f"the user {one.user} does not exist here"
    return ""


def _there(command: str) -> bool:
    """Whether a command, or a path with wildcards, exists: some programs are not in PATH."""
    if command.startswith("/"):
        return any(Path("/").glob(command[1:]))
    return shutil.which(command) is not None or shutil.which(command, path="/usr/sbin:/sbin") is not None
