"""Profiles: the settings of a run in a TOML file, which `numalloc run --save-profile` and `numalloc tune` write."""

import os
from pathlib import Path

import tomli_w

from numalloc_tools.allocators.found import NAMES
from numalloc_tools.launch.setting import Setting
from numalloc_tools.machine.words import printable
from numalloc_tools.problem import Problem
from numalloc_tools.toml_file import content_of

_HEAD = "# Levers of a program: numalloc run --profile THIS_FILE -- PROGRAM\n"
_WORDS = ("allocator", "threads", "memory", "huge_pages", "autonuma")  # hyphens in the file, underscores here
_OPTIONS = "options"


def load(path: Path) -> dict:
    """The fields of Setting that the file sets."""
    content = content_of(path, "--profile", "a file that --save-profile has written")
    try:
        return _fields(content)
    except Problem as problem:
        raise Problem(f"{path}: {printable(str(problem))}") from None


def save(path: Path, setting: Setting, flag: str = "--save-profile") -> None:
    content: dict = {}
    for name in _WORDS:
        if (value := getattr(setting, name)) != getattr(Setting, name) or name == "allocator":
            # Of use in another folder, too.
            content[_in_file(name)] = os.path.abspath(value) if name == "allocator" and _is_path(value) else value
    if setting.binding_only:
        content["binding-only"] = True
    if setting.options:
        content[_OPTIONS] = {name: _absolute(name, value) for name, value in setting.options}
    try:
        path.write_text(_HEAD + tomli_w.dumps(content))
    except OSError as error:
        raise Problem(f"{flag}: {path} cannot be written ({error.strerror}); accepted: a writable file") from None


def _is_path(allocator: str) -> bool:
    return allocator not in NAMES and os.path.isfile(allocator)


def _absolute(name: str, value: str) -> str:
    return os.path.abspath(value) if name == "binding_file" and value != "none" else value


def _in_file(name: str) -> str:
    return name.replace("_", "-")


def _fields(content: dict) -> dict:
    accepted = [*map(_in_file, _WORDS), "binding-only", _OPTIONS]
    fields: dict = {}
    for key, value in content.items():
        if key not in accepted:
            raise Problem(f"'{key}' is unknown; accepted: {', '.join(accepted)}")
        if key == _OPTIONS:
            if not isinstance(value, dict):
                raise Problem(f"{key} is not a table; accepted: [{_OPTIONS}] with lines such as purge_delay = 0")
            value = tuple((name, _text(name, one)) for name, one in value.items())
        elif not isinstance(value, bool if key == "binding-only" else str):
            kind = "true, false" if key == "binding-only" else "a text in quotes"
            raise Problem(f"{key}: {value!r} is not understood; accepted: {kind}")
        fields[key.replace("-", "_")] = value
    Setting(**fields)  # reports wrong values
    return fields


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | str):
        return str(value)
    raise Problem(f"{name}: {value!r} is not understood; accepted: a text, a whole number, true or false")
