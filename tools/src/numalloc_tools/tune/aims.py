"""The aims of a search: a value to minimise or maximise, and the scale on which values are compared."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Aim:
    name: str
    unit: str = ""  # s, B, or ""
    higher: bool = False  # larger values are better

    @property
    def sign(self) -> int:
        return -1 if self.higher else 1


@dataclass(frozen=True)
class Scale:
    """Converts values to losses: smaller is better, and differences can be averaged. Losses are logarithms, so that a
    difference is a ratio; if any value is zero or negative, they are fractions of the usual value."""

    aim: Aim
    ratios: bool
    usual: float = 1.0

    def loss(self, value: float) -> float:
        return self.aim.sign * (math.log(value) if self.ratios else value / self.usual)

    def shown(self, difference: float) -> float:
        """A difference of losses for people: the ratio of the values, or their difference."""
        return math.exp(self.aim.sign * difference) if self.ratios else self.aim.sign * difference * self.usual

    def shown_interval(self, interval: tuple[float, float]) -> tuple[float, float]:
        low, high = sorted(self.shown(end) for end in interval)
        return low, high


def scale_of(aim: Aim, values: Iterable[float]) -> Scale:
    known = list(values)
    if all(value > 0 for value in known):
        return Scale(aim, True)
    return Scale(aim, False, median(abs(value) for value in known) or max(abs(value) for value in known) or 1.0)
