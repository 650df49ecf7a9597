"""docs/compatibility.md: what was found, as tables of one family each."""

import os
import platform
import time
from pathlib import Path

from matrix.run import CANNOT, DIFFERS, NO_BASELINE, NOT_INSTALLABLE, NOT_TRIED, SAME, Result
from matrix.table import Row

_WORDS = {
    SAME: "as under glibc",
    DIFFERS: "**differs**",
    CANNOT: "cannot work",
    NOT_INSTALLABLE: "not installable",
    NOT_TRIED: "not to be tried here",
    NO_BASELINE: "**fails under glibc, too**",
}
_HEAD = """# Compatibility

Real programs under glibc's malloc and under numalloc, compared by output, exit status, signals of
all processes, and memory. Made by `tests/world`; [world.md](world.md) explains how, and the words.
Some programs "as under glibc" are not served by numalloc, because they are static, setuid, under a
sanitizer or have a malloc of their own: preloading does no harm there
([particulars](#particulars)).

"""


def markdown(rows: list[Row], results: dict[str, Result], watch: str) -> str:
    known = [(row, results[row.name]) for row in rows if row.name in results]
    commits = sorted({result.commit for _, result in known})
    count = {verdict: sum(result.verdict == verdict for _, result in known) for verdict in _WORDS}
    text = _HEAD
    text += f"Commit {', '.join(commits)}, {time.strftime('%Y-%m-%d', time.gmtime())}; {_machine()}; signals by {_watch(watch)}.\n\n"
    text += f"Of {len(known)} programs {count[SAME]} run as under glibc, {count[DIFFERS]} differ, {count[CANNOT]} cannot work"
    text += f", {count[NOT_INSTALLABLE] + count[NOT_TRIED]} could not be tried and {count[NO_BASELINE]} fail under glibc, too.\n"
    if absent := [row.name for row in rows if row.name not in results]:
        text += f"\nNot run: {', '.join(absent)}.\n"
    for family in dict.fromkeys(row.family for row, _ in known):
        text += f"\n## {family}\n\n| program | version | result | peak memory, MiB: glibc, numalloc | settled |\n|---|---|---|---|---|\n"
        for row, result in known:
            if row.family == family:
                text += _line(row, result)
    if parts := [(row, result) for row, result in known if _has_more(result)]:
        text += "\n## Particulars\n\n"
        for _, result in parts:
            text += f"- **{result.name}**: {_cell('; '.join([*result.faults, *result.remarks, *_measured(result)]))}\n"
    return text


def _has_more(result: Result) -> bool:
    return bool(result.faults or result.remarks or result.measures)


def _measured(result: Result) -> list[str]:
    return [f"{name}: glibc {one:g}, numalloc {other:g}" for name, (one, other) in result.measures.items() if other >= 0]


def _line(row: Row, result: Result) -> str:
    weights = [_pair(result.memory.get(what)) for what in ("peak", "settled")]
    return f"| {_cell(row.name)} | {_cell(result.version)} | {_WORDS[result.verdict]} | {weights[0]} | {weights[1]} |\n"


def _pair(pair: list[int] | None) -> str:
    if not pair:
        return ""
    return ", ".join(f"{kib / 1024:.1f}" if kib < 10240 else f"{kib / 1024:.0f}" for kib in pair)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _watch(kind: str) -> str:
    return {"connector": "the kernel's process connector", "strace": "strace"}.get(kind, "nothing (neither was allowed)")


def _machine() -> str:
    system = "Linux"
    release = Path("/etc/os-release")
    if release.is_file():
        words = dict(line.split("=", 1) for line in release.read_text().splitlines() if "=" in line)
        system = words.get("PRETTY_NAME", system).strip('"')
    return f"{system}, Linux {platform.release().split('-')[0]}, {os.cpu_count()} cores, {platform.libc_ver()[0]} {platform.libc_ver()[1]}"
