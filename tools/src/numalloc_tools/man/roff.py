"""The text of a manual page: man(7)'s macros, and the escapes."""

import re
from dataclasses import dataclass, field

_ITEM = re.compile(r"^ {2,}(\S+(?: \S+)*?)(?: {2,}| *\t)(\S.*)$")


def escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def bold(text: str) -> str:
    return f"\\fB{escaped(text)}\\fP"


def italic(text: str) -> str:
    return f"\\fI{escaped(text)}\\fP"


@dataclass
class Page:
    name: str
    section: int
    summary: str
    lines: list[str] = field(default_factory=list)

    @property
    def file(self) -> str:
        return f"{self.name}.{self.section}"

    def heading(self, text: str) -> None:
        self.lines.append(f".SH {escaped(text.upper())}")

    def subheading(self, text: str) -> None:
        self.lines.append(f".SS {escaped(text)}")

    def paragraph(self, text: str) -> None:
        """Blank lines separate paragraphs, whose lines are filled. Lines such as "  WORD  text" are items."""
        for part in re.split(r"\n\s*\n", text.strip("\n")):
            self._filled(".PP", part)

    def _filled(self, macro: str, part: str) -> None:
        said: list[str] = []
        plain = macro
        for line in [*part.split("\n"), ""]:
            item = _ITEM.match(line)
            back_to_text = macro != plain and not line.startswith(" ")
            if said and (item or not line or back_to_text):
                self.lines += [macro, escaped(" ".join(said))]
                said = []
            if back_to_text:
                macro = plain
            if item:
                macro = f".TP\n{bold(item[1])}" if plain == ".PP" else f".IP\n{bold(item[1])}:"
                said = [item[2]]
            else:
                said += line.split()

    def item(self, term: str, text: str) -> None:
        """`term` already contains markup."""
        self.lines += [".TP", term]
        first, *rest = re.split(r"\n\s*\n", text.strip("\n"))
        before = len(self.lines)
        self._filled(".IP", first)
        # The first paragraph stands beside the term.
        if self.lines[before] == ".IP":
            del self.lines[before]
        for part in rest:
            self._filled(".IP", part)

    def verbatim(self, text: str) -> None:
        self.lines += [".PP", ".nf", ".RS 4", *escaped(text.strip("\n")).split("\n"), ".RE", ".fi"]

    def text(self, version: str, date: str) -> str:
        head = [f'.TH "{escaped(self.name.upper())}" "{self.section}" "{date}" "numalloc {version}" "numalloc"']
        head += [".nh", ".SH NAME", f"{escaped(self.name)} \\- {escaped(self.summary)}"]
        return "\n".join([*head, *self.lines]) + "\n"
