"""The library's statistics, read from the table that the library is compiled from."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).with_name("tables") / "statistics.def"
_ENTRY = re.compile(r'^NUMALLOC_(|CLASS_|PROCESS_)STATISTIC\(\s*(\w+)\s*,\s*"(\w*)"\s*,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', re.MULTILINE)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
NODE, CLASS, PROCESS = "", "CLASS_", "PROCESS_"
# The statistics that only grow: the table does not mark them.
COUNTERS = {
    NODE: {
        "purged_bytes",
        "fetched_objects",
        "big_allocations",
        "remote_frees",
        "spills",
        "moved_bytes",
        "regretted_bytes",
    },
    CLASS: {"fetched"},
    PROCESS: {
        "forks",
        "refused_binding",
        "refused_affinity",
        "refused_moves",
        "refused_discards",
        "bound_threads",
        "unbound_threads",
        "limit_returns",
    },
}


@dataclass(frozen=True)
class Statistic:
    name: str
    unit: str
    text: str
    grows: bool  # counts since the start; otherwise the current value


def parsed(table: str, kind: str) -> dict[str, Statistic]:
    """The statistics of one kind in a text such as statistics.def's. A description may be several string literals."""
    return {
        name: Statistic(name, unit, "".join(_STRING.findall(strings)), name in COUNTERS[kind])
        for found, name, unit, strings in _ENTRY.findall(table)
        if found == kind
    }


@cache
def statistics(kind: str) -> dict[str, Statistic]:
    """The statistics of a node, a class or the process, by name and in the table's order."""
    return parsed(_TABLE.read_text(), kind)


def statistic(kind: str, name: str) -> Statistic:
    """The entry of the table. A library newer than these tools has names that the table lacks."""
    return statistics(kind).get(name) or Statistic(name, "", "a statistic that is unknown to this version of the tools", False)
