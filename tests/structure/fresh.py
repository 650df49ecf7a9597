#!/usr/bin/env python3
"""fresh.py [ROOT]: documents of measurements name the commit whose sources were measured, and say so where src/ or include/
are others by now.

A document has, wherever a line may break, "numalloc's sources of COMMIT" ("an unknown commit" where nobody wrote it down);
where the sources are others now, also "the sources have changed since". Status 77 where git cannot tell: the commit is not
in this clone, which is shallow or was rebased."""

import re
import subprocess
import sys
from pathlib import Path

SOURCES = ("src", "include")
UNKNOWN = "an unknown commit"
_NAMED = re.compile(rf"numalloc's sources of (?:{UNKNOWN}|(?:[\w.]+-\d+-g)?([0-9a-f]{{7,40}})\b)")
_SAYS_SO = "the sources have changed since"
_SKIPPED = 77


def documents(root: Path) -> list[Path]:
    """Notes are parts of other documents."""
    found = [root / "docs/results.md", *sorted((root / "docs/results").glob("*.md"))]
    return [path for path in found if not path.name.endswith("notes.md")] + [root / "docs/lab.md"]


def git(root: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)


def verdict(root: Path, path: Path) -> tuple[str, str]:
    """'fresh', 'stale' or 'unknown', and a line."""
    name = path.relative_to(root)
    text = " ".join(path.read_text().split())
    named = _NAMED.search(text)
    if not named:
        return "stale", f"{name}: names no commit; accepted: numalloc's sources of COMMIT, or of {UNKNOWN}"
    says_so = _SAYS_SO in text.lower()
    commit = named[1]
    if commit is None:
        return (
            ("fresh", f"{name}: unknown commit, and says that the sources have changed")
            if says_so
            else ("stale", f"{name}: of {UNKNOWN}; accepted: the words '{_SAYS_SO}', or measured again")
        )
    if git(root, "cat-file", "-e", f"{commit}^{{commit}}").returncode:
        return (
            ("fresh", f"{name}: unknown commit {commit}, and says that the sources have changed")
            if says_so
            else (
                "unknown",
                f"{name}: unknown commit {commit}: this clone is shallow or was rebased, so nothing says whether it is of these sources",
            )
        )
    changed = git(root, "diff", "--name-only", commit, "--", *SOURCES).stdout.split()
    if changed and not says_so:
        return (
            "stale",
            f"{name}: of {commit}, and {len(changed)} files of the sources are others now ({changed[0]}); accepted: measured again, or the words '{_SAYS_SO}'",
        )
    return "fresh", f"{name}: of {commit}{', and says that the sources have changed' if changed else ''}"


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    try:
        outside = git(root, "rev-parse", "--git-dir").returncode != 0
    except OSError:
        outside = True
    if outside:
        print("unknown commit: this is no checkout of git, or git is not installed")
        return _SKIPPED
    found = [verdict(root, path) for path in documents(root)]
    for _, line in found:
        print(line)
    kinds = {kind for kind, _ in found}
    return 1 if "stale" in kinds else _SKIPPED if "unknown" in kinds else 0


if __name__ == "__main__":
    sys.exit(main())
