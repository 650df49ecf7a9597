"""libnumalloc(3): the header's comments, and the tables of options and statistics."""

import re
from pathlib import Path

from numalloc_tools import options_table, statistics_table
from numalloc_tools.man.roff import Page, bold, italic

_TOKEN = re.compile(r"/\*(?P<comment>.*?)\*/|(?P<code>(?:(?!/\*).)+)", re.S)
_ATTRIBUTE = re.compile(r"\s*NUMALLOC_(?:NOEXCEPT|ALLOCATES|RESIZES|SIZE\([^)]*\)|ALIGN\([^)]*\))")
_FUNCTION = re.compile(r"^[a-z][\w \*]*?\**\b(?:numalloc|psm)_\w+\([^;{]*\);", re.M)


def page(headers: Path) -> Page:
    made = Page("libnumalloc", 3, "a malloc for machines with several memory nodes (NUMA)")
    made.heading("Library")
    made.paragraph("numalloc (libnumalloc, -lnumalloc), or preloaded with LD_PRELOAD=libnumalloc.so")
    made.heading("Synopsis")
    made.verbatim("#include <numalloc/numalloc.h>")
    text = (headers / "numalloc.h").read_text()
    sections = list(_sections(text))
    made.heading("Description")
    made.paragraph(_introduction(text))
    for title, about, entries in sections:
        if not entries:
            continue
        made.subheading(title)
        if about:
            made.paragraph(about)
        for declarations, comment in entries:
            made.item("\n.TQ\n".join(bold(one) for one in declarations), comment or "See above.")
    made.heading("Environment")
    made.paragraph(
        "The library reads these variables once, when the program starts. It reports a value that it does not understand on "
        "standard error, and uses the default."
    )
    for option in options_table.parsed((headers / "options.def").read_text()):
        if option.experiment:
            continue
        changes = " numalloc_option_set() can change it while the program runs." if option.live else ""
        made.item(f"{bold(option.variable)} (default: {italic(option.default)})", option.text + "." + changes)
    made.heading("Statistics")
    tables = {"": "Of a node", "CLASS_": "Of a size class on a node", "PROCESS_": "Of the process"}
    table = (headers / "statistics.def").read_text()
    for kind, title in tables.items():
        made.subheading(title)
        for name, statistic in statistics_table.parsed(table, kind).items():
            made.item(f"{bold(name)}, {statistic.unit}", statistic.text)
    made.heading("See also")
    made.paragraph("numalloc(1), numalloc(5), malloc(3), numa(7), numactl(8)")
    return made


def _unstarred(comment: str) -> str:
    return "\n".join(re.sub(r"^ \* ?", "", line).rstrip() for line in comment.strip().split("\n"))


def _introduction(text: str) -> str:
    return _unstarred(next(_TOKEN.finditer(text))["comment"]).partition(": ")[2]


def _sections(text: str):
    """Yields (title, introduction, [(declarations, comment)]) for each section, in the header's order."""
    title, about, comment = "", "", ""
    entries: list[tuple[list[str], str]] = []
    for token in _TOKEN.finditer(text):
        if token["comment"] is not None:
            said = _unstarred(token["comment"])
            if said.startswith("---- "):
                yield title, about, entries
                head, _, about = said.removeprefix("---- ").partition("\n")
                title, _, rest = head.partition(". ")
                title, about, entries, comment = title.rstrip("."), f"{rest}\n{about}".strip(), [], ""
            else:
                comment = said
            continue
        code = re.sub(r"\s+", " ", _ATTRIBUTE.sub("", re.sub(r"^#.*(?:\\\n.*)*$", "", token["code"], flags=re.M)).replace(";", ";\n"))
        declarations = [one.strip() for one in re.findall(r"[^;{}]*\b(?:numalloc|psm)_\w+\([^;{}]*\);", code)]
        if declarations:
            entries.append((declarations, comment))
            comment = ""
    yield title, about, entries
