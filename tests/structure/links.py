#!/usr/bin/env python3
"""Every link inside the project's pages leads to a file, and to a heading where it names one. No network."""

import re
import sys
from pathlib import Path

project = Path(sys.argv[1])


def headings(page):
    """The anchors of a page, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    found, anchors = re.findall(r"^#+ (.*)$", text, flags=re.M), set()
    for heading in found:
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchors.add(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-"))
    return anchors


# Not */**: build folders and .venv hold other projects' pages.
pages = [*project.glob("*.md")]
for room in ("docs", "bench", "examples", "tools", "research"):
    pages += project.glob(f"{room}/**/*.md")
# A part of docs/results.md, where its links are right and are looked at.
pages.remove(project / "docs/results/notes.md")
faults, links = [], 0
for page in sorted(pages):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        links += 1
        name, _, anchor = target.partition("#")
        to = page.parent / name if name else page
        if not to.exists():
            faults.append(f"{page.relative_to(project)}: no file {target}")
        elif anchor and to.suffix == ".md" and anchor not in headings(to):
            faults.append(f"{page.relative_to(project)}: no heading {target}")
if links < 50:
    faults.append(f"only {links} links found: the pages are not where this test looks")
sys.exit("\n".join(faults) or 0)
