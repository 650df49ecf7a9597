"""table.py [--program FILE] [--library FILE] [--allocators NAMES]: all bugs under numalloc and its peers, and the tables of
docs/security.md written anew. PYTHONPATH must lead to tools/src: peers are built from the sources inside their crates."""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from numalloc_tools import allocators
from numalloc_tools.allocators import crates
from numalloc_tools.problem import Problem
from runs import HEATS, SIZES, VERDICTS, Run, letters, row_of_sizes, run_all

SOURCE = Path(__file__).resolve().parents[3]
DOCUMENT = SOURCE / "docs" / "security.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
SCUDO = "scudo"
PEERS = ("glibc", "jemalloc-new", "tcmalloc", "rpmalloc", "mimalloc3", "mimalloc3-secure", "snmalloc", "snmalloc-checks", SCUDO)
HARDENED = "numalloc-hardened"
NAMES = ("numalloc", HARDENED, *PEERS)
HEAT_TITLES = {
    "cold": "Cold: the bug is the first thing the program does",
    "warm": "Warm: after 10^6 mallocs and frees of many sizes",
    "other": "Another thread's objects, warm",
}


def scudo() -> allocators.Allocator:
    name = f"libclang_rt.scudo_standalone-{os.uname().machine}.so"
    libraries = sorted(Path("/usr/lib").glob(f"llvm-*/lib/clang/*/lib/linux/{name}"))
    if not libraries:
        return allocators.Allocator(SCUDO, missing="not installed: apt install libclang-rt-dev")
    return allocators.Allocator(SCUDO, (libraries[-1],), f"clang {libraries[-1].parts[-4]}")


def named(name: str, library: Path) -> allocators.Allocator:
    if name == SCUDO:
        return scudo()
    if name == HARDENED:
        return allocators.Allocator(name, (library.with_name(f"lib{HARDENED}.so"),), "beside numalloc's")
    if name in crates.CHECKED:
        recipe = crates.CHECKED[name]
        try:
            return allocators.Allocator(name, (crates.build(name),), recipe.allocator_version)
        except crates.CannotBuild as reason:
            return allocators.Allocator(name, missing=f"cannot be built: {reason}")
    return allocators.chosen([name], library, {}, say)[0]


def say(text: str) -> None:
    print(text, file=sys.stderr)


def table(titles: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (titles, ["---"] * len(titles), *rows)]


def counts(heat: str, results: dict[str, list[Run]]) -> list[str]:
    rows = []
    for name, runs in results.items():
        counted = Counter(run.verdict for run in runs if run.heat == heat)
        rows.append([name, *(str(counted[verdict]) for verdict in VERDICTS)])
    return [f"**{HEAT_TITLES[heat]}**", "", *table(["", *VERDICTS], rows), ""]


def matrix(results: dict[str, list[Run]]) -> list[str]:
    """Of the warm heap: a letter for small, medium and big."""
    warm = HEATS.index("warm")
    rows = []
    for bug in dict.fromkeys(run.bug for run in results["numalloc"]):
        cells = ["".join(letters(runs, bug, size)[warm] for size in SIZES) for runs in results.values()]
        rows.append([f"`{bug}`", *cells])
    return table(["", *results], rows)


def by_bug(name: str, runs: list[Run], key: str) -> list[str]:
    """What check.py compares."""
    rows = [row_of_sizes(runs, bug) for bug in dict.fromkeys(run.bug for run in runs)]
    return [
        f"## {name.capitalize()} by bug",
        "",
        f"{key}.",
        "A letter each for cold, warm and another thread's object.",
        "",
        *table(["", *SIZES], rows),
        "",
    ]


def tables(results: dict[str, list[Run]], versions: dict[str, str]) -> str:
    ours = results["numalloc"]
    known = [f"- {name}: {version.removeprefix(f'{name} ')}" for name, version in versions.items() if name not in ("numalloc", HARDENED)]
    key = ", ".join(f"{letter} {verdict}" for verdict, letter in VERDICTS.items())
    lines = ["## By allocator", "", f"{len(ours) // len(HEATS)} runs of each in each table. The versions:", "", *known, ""]
    for heat in HEATS:
        lines += counts(heat, results)
    for name in ("numalloc", HARDENED):
        lines += by_bug(name, results[name], key)
    lines += ["## All by bug, warm", "", "A letter each for small, medium and big.", "", *matrix(results)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    built = SOURCE / "build/release"
    parser.add_argument("--program", type=Path, default=built / "tests/programs/bugs", help="the program with the bugs")
    parser.add_argument("--library", type=Path, default=built / "libnumalloc.so", help="numalloc's")
    parser.add_argument("--allocators", default=",".join(NAMES), help="fewer than all are printed, not written; numalloc always")
    wanted = parser.parse_args()
    names = wanted.allocators.split(",")
    for name in names:
        if name not in NAMES:
            raise Problem(f"--allocators: '{name}' is unknown; accepted: {', '.join(NAMES)}")
    for file, option in ((wanted.program, "--program"), (wanted.library, "--library")):
        if not file.is_file():
            raise Problem(f"{option}: {file} is no file; accepted: what cmake --build --preset release builds")
    results, versions = {}, {}
    for name in dict.fromkeys(["numalloc", HARDENED, *names]):
        allocator = named(name, wanted.library)
        if allocator.missing:
            raise Problem(f"{name}: {allocator.missing}")
        say(f"{name} {allocator.version}")
        results[name] = run_all(wanted.program, allocator.libraries[0] if allocator.libraries else None)
        versions[name] = allocator.version
    text = tables(results, versions)
    if set(names) != set(NAMES):
        print(text)
        return
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    try:
        main()
    except Problem as problem:
        sys.exit(f"table.py: {problem}")
