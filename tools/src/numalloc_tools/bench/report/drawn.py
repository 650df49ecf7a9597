"""A figure as the page takes it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Drawn:
    name: str
    heading: str
    words: str
    svg: str
