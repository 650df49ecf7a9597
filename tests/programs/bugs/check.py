"""check.py PROGRAM LIBRARY small|medium|big [hardened]: which of the bugs numalloc finds, and with which message, must be as in the
golden file and in docs/security.md. A bug that is found in addition fails, too: NUMALLOC_UPDATE=1 writes the golden file anew,
and the commit says why. Exits with 77 (skipped) on several memory nodes, where another thread's object may be another node's."""

import os
import sys
from pathlib import Path

from runs import SIZES, letters, run_all

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parents[2] / "docs" / "security.md"


def documented(name: str, bug: str, size: str) -> str:
    """The letters in the row of the library's own table."""
    _, _, text = DOCUMENT.read_text().partition(f"## {name.capitalize()} by bug")
    for line in text.partition("## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == f"`{bug}`" and len(cells) == 1 + len(SIZES):
            return cells[1 + SIZES.index(size)]
    return ""


program, library, size, *kind = Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]
name = "-".join(["numalloc", *kind])
if len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) > 1:
    print("this machine has several memory nodes; the golden files are those of one")
    sys.exit(77)
golden = HERE.joinpath("golden", *kind, f"{size}.txt")
runs = run_all(program, library, (size,))
# Chance decides in the hardened library whether the freed object's bag is still there.
lines = [
    run.line().replace("is not an allocated object, or was freed already", "was freed already") if kind else run.line() for run in runs
]
if os.environ.get("NUMALLOC_UPDATE") == "1":
    golden.write_text("\n".join(lines) + "\n")
    print(f"{golden} has {len(lines)} lines now; {HERE / 'table.py'} writes {DOCUMENT.name}")
    sys.exit()

wanted = golden.read_text().splitlines()
changes = [f"- {line}" for line in wanted if line not in lines] + [f"+ {line}" for line in lines if line not in wanted]
if changes:
    print(*changes, sep="\n")
    sys.exit(
        f"{size}: -: as it was, +: as it is now. If that is meant: NUMALLOC_UPDATE=1 ctest --preset release -R '^bugs[.]', "
        f"then {HERE / 'table.py'}"
    )
stale = [bug for bug in dict.fromkeys(run.bug for run in runs) if documented(name, bug, size) != letters(runs, bug, size)]
if stale:
    sys.exit(f"{size}: {DOCUMENT} says otherwise of {', '.join(stale)}: run {HERE / 'table.py'}")
print(f"{size}: all {len(lines)} verdicts are as they were")
