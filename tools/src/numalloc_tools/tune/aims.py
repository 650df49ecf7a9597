"""What a search tries to make small or large, and on which scale values are compared."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Aim:
    name: str
    unit: str = ""  # s, B, or nothing
    higher: bool = False  # more is better

    @property
    def sign(self) -> int:
        return -1 if self.higher else 1


@dataclass(frozen=True)
class Scale:
    """Values become losses, of which less is better and whose differences can be averaged: logarithms, so that a
    difference is a ratio, unless a value is zero or negative; then parts of what is usual."""

    aim: Aim
    ratios: bool
    usual: float = 1.0

    def loss(self, value: float) -> float:
        return self.aim.sign * (math.log(value) if self.ratios else value / self.usual)

    def shown(self, difference: float) -> float:
        """A difference of losses as people read it: the ratio of the values, or how much they differ."""
        return math.exp(self.aim.sign * difference) if self.ratios else self.aim.sign * difference * self.usual

    def shown_interval(self, interval: tuple[float, float]) -> tuple[float, float]:
        low, high = sorted(self.shown(end) for end in interval)
        return low, high


def scale_of(aim: Aim, values: Iterable[float]) -> Scale:
    known = list(values)
    if all(value > 0 for value in known):
        return Scale(aim, True)
    return Scale(aim, False, median(abs(value) for value in known) or max(abs(value) for value in known) or 1.0)
