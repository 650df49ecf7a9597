"""libnumalloc(3): the header's own words, and the tables of options and statistics."""

import re
from pathlib import Path

from numalloc_tools.man.roff import Page, bold, italic

_OPTION = re.compile(r'^NUMALLOC_(LIVE_)?OPTION\((\w+),\s*(\w+),\s*([^,]+?),\s*"((?:[^"\\]|\\.)*)"\)', re.M)
_STATISTIC = re.compile(r'^NUMALLOC_(|CLASS_|PROCESS_)STATISTIC\((\w+), "([^"]*)", "([^"]*)"\)', re.M)
_TOKEN = re.compile(r"/\*(?P<comment>.*?)\*/|(?P<code>(?:(?!/\*).)+)", re.S)
_ATTRIBUTE = re.compile(r"\s*NUMALLOC_(?:NOEXCEPT|ALLOCATES|RESIZES|SIZE\([^)]*\)|ALIGN\([^)]*\))")
_FUNCTION = re.compile(r"^[a-z][\w \*]*?\**\b(?:numalloc|psm)_\w+\([^;{]*\);", re.M)


def page(headers: Path) -> Page:
    made = Page("libnumalloc", 3, "memory where you say: a malloc for machines of several memory nodes")
    made.heading("Library")
    made.paragraph("numalloc (libnumalloc, -lnumalloc), or preloaded: LD_PRELOAD=libnumalloc.so")
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
    made.paragraph("Read once, as the program starts. A value that is not understood is named on standard error, and the default is used.")
    for group, name, _, default, what in _OPTION.findall((headers / "options.def").read_text()):
        changes = " May change while the program runs: numalloc_option_set()." if group == "LIVE_" else ""
        made.item(f"{bold('NUMALLOC_' + name.upper())} (default: {italic(default)})", what.replace('\\"', '"') + "." + changes)
    made.heading("Statistics")
    tables = {"": "Of a node", "CLASS_": "Of a size class on a node", "PROCESS_": "Of the process"}
    statistics = _STATISTIC.findall((headers / "statistics.def").read_text())
    for kind, title in tables.items():
        made.subheading(title)
        for _, name, unit, what in (one for one in statistics if one[0] == kind):
            made.item(f"{bold(name)}, {unit}", what)
    made.heading("See also")
    made.paragraph("numalloc(1), numalloc(5), malloc(3), numa(7), numactl(8)")
    return made


def _unstarred(comment: str) -> str:
    return "\n".join(re.sub(r"^ \* ?", "", line).rstrip() for line in comment.strip().split("\n"))


def _introduction(text: str) -> str:
    return _unstarred(next(_TOKEN.finditer(text))["comment"]).partition(": ")[2]


def _sections(text: str):
    """(title, what is said of all, [(declarations, comment)]) in the header's order."""
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
