#!/usr/bin/env python3
"""The walks of docs/design.md name files of src/, and functions that these files define or declare.

    walks.py PROJECT            exit status 1, and a line for every fault

A step is an item of a numbered list, and every numbered item of the page is one. It begins with

    N. `function()` in `path/from/src.cpp`: what the function decides or moves

with N counting from 1. A class or a namespace may stand before the function: `PageHeap::give()`. Wherever else the page
has `function()` in `path`, that is checked too. The line may break at any blank.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from check import finish
from layers import without_comments

PAGE = "docs/design.md"
FEWEST_STEPS = 30
PLACE = re.compile(r"`((?:\w+::)*\w+)\(\)`\s+in\s+`([\w./]+)`")
ITEM = re.compile(r"(\d+)\.\s+(.*)", re.S)
# What stands before the name in a definition or declaration: words of a type, and no word of a statement.
TYPE = (
    r"(?:\[\[\w+\]\]\s+|__attribute__\(\(\w+\)\)\s+|(?!(?:return|else|do|case|goto|throw|new|delete)\b)"
    r"(?:extern \"\"|[\w:]+(?:<[^<>()]*>)?)(?:\s*[*&]+\s*|\s+))+"
)


def defines(text: str, function: str) -> bool:
    """Whether a source without comments has the function as more than a call."""
    *scopes, name = function.split("::")
    return re.search(rf"^[ ]*{TYPE}(?:\w+::)*{name}\(", text, re.M) is not None and all(re.search(rf"\b{s}\b", text) for s in scopes)


def faults_of_page(page: str, sources: Mapping[str, str]) -> list[str]:
    """`sources`: the text of each file of src/ by its path from there."""
    faults, last = [], 0
    for item in re.finditer(r"^\d+\. .*(?:\n(?![ ]*$|\d+\. |[#-]).*)*", page, re.M):
        line = page.count("\n", 0, item.start()) + 1
        found = ITEM.fullmatch(item[0])
        assert found is not None
        number, text = int(found[1]), found[2]
        if number not in (1, last + 1):
            faults.append(f"{PAGE}:{line}: step {number} follows step {last}")
        last = number
        if not re.match(PLACE.pattern + ":", text):
            faults.append(f"{PAGE}:{line}: step {number} does not begin with `function()` in `file`:")
    for place in PLACE.finditer(page):
        function, path = place.groups()
        line = page.count("\n", 0, place.start()) + 1
        if path not in sources:
            faults.append(f"{PAGE}:{line}: no file src/{path}")
        elif not defines(without_comments(sources[path]), function):
            faults.append(f"{PAGE}:{line}: src/{path} has no function {function}()")
    return faults


def main() -> None:
    project = Path(sys.argv[1])
    source = project / "src"
    page = (project / PAGE).read_text()
    files = [p for p in sorted(source.rglob("*")) if p.suffix in {".h", ".cpp"}]
    faults = faults_of_page(page, {p.relative_to(source).as_posix(): p.read_text() for p in files})
    steps = len(re.findall(r"^\d+\. ", page, re.M))
    if steps < FEWEST_STEPS:
        faults.append(f"{PAGE}: only {steps} steps: the walks are not where this test looks")
    finish(faults, f"{steps} steps, {len(PLACE.findall(page))} functions: each is where the page says")


if __name__ == "__main__":
    main()
