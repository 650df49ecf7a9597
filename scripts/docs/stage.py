"""The pages as mkdocs is to see them: stage.py FOLDER, from the project's folder.

The repository's own layout, so that links between pages stay as they are. What a page links to besides is copied,
if it is a file. A folder is no page, nor a hidden file: such a link becomes its words.
"""

import re
import shutil
import sys
from pathlib import Path

project, stage = Path.cwd(), Path(sys.argv[1])
ROOMS = ("docs", "bench", "examples", "tools", "bindings", "research")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```)", re.M | re.S)

pages = [*project.glob("*.md"), *(page for room in ROOMS for page in (project / room).glob("**/*.md"))]
pages = [page for page in pages if page.relative_to(project) != Path("docs/results/notes.md")]
shutil.rmtree(stage, ignore_errors=True)


def linked(page: Path, match: re.Match) -> str:
    picture, words, target, anchor = match.groups()
    to = (page.parent / target).resolve()
    # mkdocs leaves out what is hidden.
    if to.is_dir() or to.name.startswith(".") or ".github" in to.parts:
        return words
    if to.suffix != ".md" and to.is_relative_to(project) and to.is_file():
        copy = stage / to.relative_to(project)
        # mkdocs would take a text without a suffix, or a template, for something else.
        if not copy.suffix:
            copy, target = copy.with_suffix(".txt"), f"{target}.txt"
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(to, copy)
    return f"{picture}[{words}]({target}{anchor or ''})"


for page in pages:
    parts = FENCED.split(page.read_text())
    for i in range(0, len(parts), 2):
        parts[i] = LINK.sub(lambda match, page=page: linked(page, match), parts[i])
    copy = stage / page.relative_to(project)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text("".join(parts))
