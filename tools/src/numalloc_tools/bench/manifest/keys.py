"""The table of the keys of a [[program]], for `numalloc bench`, its messages and docs/programs.md."""

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_SIZE = re.compile(r"[A-Z][A-Z0-9_]*")
GIVEN = ("THREADS", "SEED", "RUN", "SOURCE", "BUILT", "PORT")  # variables of every command
METRICS = ("seconds", "rate")


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
        "the name in results; required",
    ),
    "family": Key(_text, "a text", "the group in which results show the program; `--only` accepts it", "programs"),
    "description": Key(_text, "a text", "the program's task", ""),
    "source": Key(_text, "a text", "the author or paper that described the program", ""),
    "needs": Key(
        _named_texts,
        'a table such as { pbzip2 = "pbzip2" }',
        "commands (or paths) that the program needs, each with its Debian package",
        {},
    ),
    "threads": Key(_numbers, "a list of numbers from 1 to 10000", "useful numbers of threads; the middle one is the standard", [1]),
    "sizes": Key(
        _sizes,
        "a table of integers above 0 with names in capitals, other than the given variables",
        "amounts of work at scale 1; `--scale` multiplies each; every command gets them as variables",
        {},
    ),
    "paper": Key(
        _sizes, "a table of integers above 0 with names in capitals, other than the given variables", "the same with `--paper`", {}
    ),
    "build": Key(_texts, f"a list of {_SHELL}", "run in `$BUILT`, once for each call of `numalloc bench`", []),
    "prepare": Key(_texts, f"a list of {_SHELL}", "run in `$RUN`, an empty folder, before each run", []),
    "command": Key(_text, _WORDS, "the measured program, from start to end; or:"),
    "server": Key(_text, _WORDS, "the measured server; needs `ready` and `load`"),
    "ready": Key(_text, "a shell command", "ends with status 0 when the server answers"),
    "load": Key(_text, "a shell command", "the server's work; `metric` and `check` read its output"),
    "stop": Key(lambda value: value in signal.Signals.__members__, "a signal such as SIGTERM", "ends the server", "SIGTERM"),
    "ends": Key(_statuses, "a list of statuses from 0 to 255", "exit statuses of success", [0]),
    "environment": Key(_named_texts, "a table of texts", "more environment variables of `command` or `server`", {}),
    "user": Key(_text, "a user's name", "the user under whom the program runs if root measures", ""),
    "metric": Key(
        _metric,
        '"wall", "json", or { seconds = "PATTERN" } or { rate = "PATTERN" } with one group',
        "wall time (for a server: of its load); a number in the output (a rate is converted to seconds per operation); or json: the last line of the output is an object with `seconds`, other figures, and `check`, which must be ok",
        "wall",
    ),
    "check": Key(_pattern, _PATTERN, "a pattern that the output contains if the data are right"),
    "verify": Key(
        _text,
        "a shell command",
        "ends with status 0 after the run if the data are right (a server still answers then); this or `check` is required",
    ),
    "quick": Key(lambda value: type(value) is bool, "true or false", "whether `--quick` includes the program", False),
}


def markdown() -> str:
    """The table for docs/programs.md."""
    rows = ["| key | meaning | accepted |", "|---|---|---|"]
    for name, key in TABLE.items():
        standard = "" if key.standard in (None, "", [], {}) else f"; default `{key.standard}`"
        accepted = key.accepted.replace("|", "\\|")
        rows.append(f"| `{name}` | {key.meaning} | {accepted}{standard} |")
    return "\n".join(rows)
