"""One self-contained HTML page: opening it fetches nothing."""

import html
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from string import Template

_PAGE, _STYLE = (Path(__file__).with_suffix(suffix) for suffix in (".html", ".css"))


@dataclass(frozen=True)
class Drawn:
    """A figure for the page."""

    name: str
    heading: str
    words: str
    svg: str


def page(title: str, heading: str, subtitle: str, top: str, contents: Iterable[tuple[str, str]], body: Iterable[str]) -> str:
    """`top` and `body` are HTML; `contents`: the name of each section, and its heading."""
    return Template(_PAGE.read_text()).substitute(
        style=_STYLE.read_text(),
        title=title,
        heading=heading,
        subtitle=escaped(subtitle),
        top=top,
        contents="".join(f'<a href="#{name}">{escaped(text)}</a>' for name, text in contents),
        body="\n".join(body),
    )


def section(name: str, heading: str, words: str, body: str) -> str:
    return f'<section id="{name}"><h2>{escaped(heading)}</h2><p class="words">{escaped(words)}</p>{body}</section>'


def escaped(value: object) -> str:
    return html.escape(str(value))
