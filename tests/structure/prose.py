#!/usr/bin/env python3
"""Lines of prose in the project's pages have less than 100 columns; tables, code and URLs may be longer.

prose.py PROJECT            exit status 1, and a line for every fault
prose.py PROJECT --write    breaks the paragraphs anew that have such a line
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from check import finish

MOST = 99
FENCE = re.compile(r"\s*(```|~~~)")
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")
# What would begin something else, were it the first word of a line.
NOT_FIRST = re.compile(r"(?:[-*+>|]|#+|\d+[.)])$|[|>#]|```")


def paragraphs(lines: list[str]) -> Iterator[tuple[int, int]]:
    """First line and end of each paragraph and list item of prose."""
    fenced = False
    begin = None
    for i, line in enumerate([*lines, ""]):
        is_fence = bool(FENCE.match(line))
        item = ITEM.match(line)
        indented = line.startswith("    ") and begin is None and not item
        other = fenced or is_fence or not line.strip() or line.lstrip().startswith(("|", "#", "<", "![")) or indented
        if begin is not None and (other or item):
            yield begin, i
            begin = None
        if not other and begin is None:
            begin = i
        if is_fence:
            fenced = not fenced


def too_long(line: str) -> bool:
    return len(line) > MOST and "://" not in line


def broken(lines: list[str]) -> list[str]:
    """The paragraph in lines that are short enough, as far as its words are."""
    item = ITEM.match(lines[0])
    indent = re.match(r"\s*", lines[0])[0]
    lead = item[0] if item else indent
    rest = " " * len(lead)
    found = [lead]
    for word in " ".join(lines).removeprefix(lead).split():
        line = found[-1]
        gap = "" if line.strip() in ("", lead.strip()) and len(line) <= len(lead) else " "
        if gap and len(line) + 1 + len(word) > MOST:
            kept, _, last = line.rpartition(" ") if NOT_FIRST.match(word) else (line, "", "")
            found[-1:] = [kept, rest + f"{last} {word}".lstrip()]
        else:
            found[-1] = line + gap + word
    return found


def faults_of(page: Path, name: str) -> list[str]:
    lines = page.read_text().splitlines()
    return [
        f"{name}:{i + 1}: {len(lines[i])} columns, {MOST} are the most: {lines[i][:40]}..."
        for begin, end in paragraphs(lines)
        for i in range(begin, end)
        if too_long(lines[i])
    ]


def rewrite(page: Path) -> None:
    lines = page.read_text().splitlines()
    for begin, end in reversed(list(paragraphs(lines))):
        if any(map(too_long, lines[begin:end])):
            lines[begin:end] = broken(lines[begin:end])
    page.write_text("\n".join(lines) + "\n")


def main() -> None:
    project = Path(sys.argv[1])
    # The other pages of docs/results are made by a command.
    places = ("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/results/a*.md", "docs/results/*notes.md", "research/README.md")
    pages = {str(page.relative_to(project)): page for place in places for page in project.glob(place)}
    pages = dict(sorted(pages.items()))
    if sys.argv[2:] == ["--write"]:
        for page in pages.values():
            rewrite(page)
    faults = [fault for name, page in pages.items() for fault in faults_of(page, name)]
    if len(pages) < 20:
        faults.append(f"only {len(pages)} pages found: they are not where this test looks")
    finish(faults, f"{len(pages)} pages: no line of prose is longer than {MOST} columns")


if __name__ == "__main__":
    main()
