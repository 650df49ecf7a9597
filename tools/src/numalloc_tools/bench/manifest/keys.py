"""The one table of what a [[program]] may say: `numalloc bench`, its messages and docs/programs.md go by it."""

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_SIZE = re.compile(r"[A-Z][A-Z0-9_]*")
GIVEN = ("THREADS", "SEED", "RUN", "SOURCE", "BUILT", "PORT")  # variables of every command
METRICS = ("seconds", "rate")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Key:
    good: Callable[[Any], bool]
    accepted: str
    meaning: str
    standard: Any = None


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _files(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and _FILE.fullmatch(one) for one in value)


def _pattern(value: Any) -> bool:
    try:
        re.compile(value)
    except (re.error, TypeError):
        return False
    return _text(value)


def _metric(value: Any) -> bool:
    if value in ("wall", "json"):
        return True
    if not isinstance(value, dict) or len(value) != 1:
        return False
    [(kind, pattern)] = value.items()
    return kind in METRICS and _pattern(pattern) and re.compile(pattern).groups == 1


def _numbers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(one) is int and 1 <= one <= 10_000 for one in value)


def _statuses(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(one) is int and 0 <= one <= 255 for one in value)


def _sizes(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _SIZE.fullmatch(name) and name not in GIVEN and type(size) is int and size > 0 for name, size in value.items()
    )


def _named_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_text, value.values()))


_SHELL = "shell commands"
_WORDS = "the words of a command, without a shell"
_PATTERN = "a regular expression"
TABLE: dict[str, Key] = {
    "name": Key(
        lambda value: isinstance(value, str) and bool(_NAME.fullmatch(value)),
        "small letters, digits and -",
        "what results call it; required",
    ),
    "family": Key(_text, "a text", "programs of a family are shown together, and `--only` knows it", "programs"),
    "description": Key(_text, "a text", "what it does", ""),
    "source": Key(_text, "a text", "who described it", ""),
    "needs": Key(
        _named_texts, 'a table such as { pbzip2 = "pbzip2" }', "commands (or paths) that must be there, each with its Debian package", {}
    ),
    "threads": Key(
        _numbers, "a list of numbers from 1 to 10000", "numbers of threads worth measuring; the middle one is the standard", [1]
    ),
    "sizes": Key(
        _sizes,
        "a table of whole numbers above 0 by names in capitals, other than those given",
        "how much is done at scale 1; `--scale` multiplies each; a variable of every command",
        {},
    ),
    "paper": Key(_sizes, "a table of whole numbers above 0 by names in capitals, other than those given", "the same under `--paper`", {}),
    "build": Key(
        _texts,
        f"a list of {_SHELL}",
        "run in `$BUILT`, once for each call of `numalloc bench`; its variables are `$SOURCE`, `$BUILT` and those of `sizes`",
        [],
    ),
    "copies": Key(
        _files,
        "a list of names of letters, digits and . _ -",
        "files and folders of `$BUILT` that are copied into `$RUN` before each run, `user`'s own there",
        [],
    ),
    "prepare": Key(_texts, f"a list of {_SHELL}", "run in `$RUN`, an empty folder, before each run", []),
    "command": Key(_text, _WORDS, "what is measured, from start to end; or:"),
    "server": Key(_text, _WORDS, "what is measured while it answers; with `ready` and `load`"),
    "ready": Key(_text, "a shell command", "ends with status 0 once the server answers"),
    "load": Key(_text, "a shell command", "the server's work; what it prints is what `metric` and `check` look at"),
    "stop": Key(lambda value: value in signal.Signals.__members__, "a signal such as SIGTERM", "ends the server", "SIGTERM"),
    "ends": Key(_statuses, "a list of statuses from 0 to 255", "statuses that are well", [0]),
    "environment": Key(_named_texts, "a table of texts", "further variables of `command` or `server`", {}),
    "user": Key(_text, "a user's name", "who runs it where root measures", ""),
    "metric": Key(
        _metric,
        '"wall", "json", or { seconds = "PATTERN" } or { rate = "PATTERN" } with one group',
        "wall time (a server's: of its load), or what it (a server's: its load) prints: of a rate the seconds that one takes; json: the last line is an object whose `seconds` and other numbers are figures, and whose `check` is ok",
        "wall",
    ),
    "check": Key(_pattern, _PATTERN, "what it must print for its data to be right"),
    "verify": Key(
        _text, "a shell command", "must end with status 0 after the run (a server then still answers); this or `check` is required"
    ),
    "quick": Key(lambda value: type(value) is bool, "true or false", "whether `--quick` has time for it", False),
}


def markdown() -> str:
    """The table as docs/programs.md has it."""
    rows = ["| key | what it means | accepted |", "|---|---|---|"]
    for name, key in TABLE.items():
        standard = "" if key.standard in (None, "", [], {}) else f"; else `{key.standard}`"
        accepted = key.accepted.replace("|", "\\|")
        rows.append(f"| `{name}` | {key.meaning} | {accepted}{standard} |")
    return "\n".join(rows)
