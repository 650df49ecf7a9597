"""The library's statistics, read from the table that the library itself is made from."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).with_name("tables") / "statistics.def"
_ENTRY = re.compile(r'^NUMALLOC_(|CLASS_|PROCESS_)STATISTIC\(\s*(\w+)\s*,\s*"(\w*)"\s*,\s*"((?:[^"\\]|\\.)*)"\s*\)', re.MULTILINE)
NODE, CLASS, PROCESS = "", "CLASS_", "PROCESS_"
# What only grows. The table says so in words, and only of some.
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
    PROCESS: {"forks", "refused_binding", "refused_affinity", "refused_moves", "refused_discards"},
}


@dataclass(frozen=True)
class Statistic:
    name: str
    unit: str
    text: str
    grows: bool  # counts since the start; else it is a figure of the moment


@cache
def statistics(kind: str) -> dict[str, Statistic]:
    """Those of a node, of a class or of the process, by name and in the table's order."""
    return {
        name: Statistic(name, unit, text, name in COUNTERS[kind])
        for found, name, unit, text in _ENTRY.findall(_TABLE.read_text())
        if found == kind
    }


def statistic(kind: str, name: str) -> Statistic:
    """A library that is newer than this table has names that are not in it."""
    return statistics(kind).get(name) or Statistic(name, "", "a statistic that this version of the tools does not know", False)
