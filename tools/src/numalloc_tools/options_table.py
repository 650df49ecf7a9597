"""The library's options, read from the table that the library is compiled from."""

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from numalloc_tools.machine.words import printable
from numalloc_tools.problem import Problem

PREFIX = "NUMALLOC_"
_TABLE = Path(__file__).with_name("tables") / "options.def"
_ENTRY = re.compile(
    r'^NUMALLOC_(|LIVE_|EXPERIMENT_)OPTION\(\s*(\w+)\s*,\s*(\w+)\s*,\s*([^,\s]+)\s*,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', re.MULTILINE
)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')

# As src/base/number_list.h, src/options/memory_placement.h and os::max_os_nodes have it.
_MOST_NUMBER = 1_000_000_000
_MOST_NODES = 1024
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def _words(*accepted: str) -> Callable[[str], bool]:
    return lambda text: text in accepted


def is_node_list(text: str) -> bool:
    """Whether the text is a list such as 0-3,8: no spaces, no backward range, as the kernel and the library write it."""
    if not re.fullmatch(r"[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*", text):
        return False
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) < int(first) or int(last or first) >= _MOST_NODES:
            return False
    return True


def _memory(text: str) -> bool:
    word, colon, rest = text.partition(":")
    if not colon:
        return word in ("local", "interleave")
    if word == "preferred":
        return re.fullmatch("[0-9]+", rest) is not None and int(rest) < _MOST_NODES
    return word == "bind" and is_node_list(rest)


def _milliseconds(text: str) -> bool:
    if text == "-1":
        return True
    match = re.fullmatch("([0-9]+)(s|ms)?", text)
    if not match or int(match[1]) > _MOST_NUMBER:
        return False
    return int(match[1]) * (1000 if match[2] == "s" else 1) < 1 << 31


def bytes_of(text: str) -> int | None:
    """The size as the library reads it; None if the library would reject it."""
    match = re.fullmatch("([0-9]+)(?:([KMGTkmgt])(?:B|iB)?)?", text)
    return int(match[1]) << _UNITS[(match[2] or "").upper()] if match else None


def _size(text: str) -> bool:
    found = bytes_of(text)
    return found is not None and found < 1 << 64


def _sampling(text: str) -> bool:
    found = bytes_of(text)
    return text in ("off", "on") or (found is not None and found <= 1 << 30)


def _one_in(text: str) -> bool:
    match = re.fullmatch("(1/)?([0-9]+)", text)
    return text == "off" or (match is not None and (1 if match[1] else 0) <= int(match[2]) <= _MOST_NUMBER)


# Signals of the kernel, of libc and of faults.
_NOT_HANDLED = (9, 19, 32, 33, *map(int, (signal.SIGILL, signal.SIGTRAP, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS)))


def _signal(text: str) -> bool:
    if re.fullmatch("[0-9]+", text):
        return 1 <= int(text) <= 64 and int(text) not in _NOT_HANDLED
    return text.removeprefix("SIG") in ("USR1", "USR2", "HUP", "WINCH", "PROF", "none")


# For each kind the accepted values, as in src/options/options.h, and the check of src/options/parse.h.
KINDS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "Binding": ("auto, interleave, saturate, file, none", _words("auto", "interleave", "saturate", "file", "none")),
    "MemoryBinding": ("preferred, strict, none", _words("preferred", "strict", "none")),
    "Memory": ("local, interleave, preferred:NODE, bind:NODES such as 0-3,8", _memory),
    "Interleave": ("off, serial, all", _words("off", "serial", "all")),
    "HugePages": ("system, auto, on, off", _words("system", "auto", "on", "off")),
    "DeepBind": ("share, drop, keep", _words("share", "drop", "keep")),
    "Path": ("a path, or none", bool),
    "Milliseconds": ("milliseconds, a number with ms or s, or -1 for never", _milliseconds),
    "Size": ("bytes, or a number with K, M, G or T", _size),
    "Sampling": ("off, on (512K), or bytes up to 1G: a number, or one with K, M or G", _sampling),
    "Signal": ("USR1, USR2, HUP, WINCH, PROF, another signal's number, or none", _signal),
    "OneIn": ("1/N or N, up to 1000000000, or 0 or off for none", _one_in),
    "Flag": ("0, 1, off, on, no, yes", _words("0", "1", "off", "on", "no", "yes")),
}
_ANY = ("a text", bool)  # for a kind that is not in the list yet: the library itself reports values that it does not understand
# --profile of the commands names a file of settings.
_FLAGS = {"profile": "--heap-profile", "profile_file": "--heap-profile-file"}


@dataclass(frozen=True)
class Option:
    name: str  # as in options.def: purge_delay
    kind: str
    accepted: str  # in words
    default: str
    text: str  # the description
    experiment: bool = False  # only a library configured with -DNUMALLOC_EXPERIMENTS=ON has it
    live: bool = False  # a running program may change it

    @property
    def flag(self) -> str:
        return _FLAGS.get(self.name) or "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    def understands(self, value: str) -> bool:
        return KINDS.get(self.kind, _ANY)[1](value)

    def check(self, value: str, where: str = "") -> str:
        """Returns the value if the library understands it. `where`: the place that the message names; default: the flag."""
        if not self.understands(value):
            raise Problem(f"{where or self.flag}: '{value}' is not understood; accepted: {self.accepted}")
        return value


def parsed(table: str) -> tuple[Option, ...]:
    """The options of a text such as options.def's. A description may be several string literals."""
    found = []
    for group, name, kind, default, strings in _ENTRY.findall(table):
        text = "".join(_STRING.findall(strings)).replace('\\"', '"').replace("\\\\", "\\")
        found.append(Option(name, kind, KINDS.get(kind, _ANY)[0], default, text, group == "EXPERIMENT_", group == "LIVE_"))
    return tuple(found)


@cache
def _all() -> tuple[Option, ...]:
    return parsed(_TABLE.read_text())


def options() -> tuple[Option, ...]:
    """The options that every library has."""
    return tuple(one for one in _all() if not one.experiment)


def experiments() -> tuple[Option, ...]:
    return tuple(one for one in _all() if one.experiment)


def option(name: str, where: str = "") -> Option:
    for one in options():
        if one.name == name:
            return one
    raise Problem(
        f"{where or printable(name)}: numalloc has no option '{printable(name)}'; accepted: {', '.join(one.name for one in options())}"
    )
