"""The confidence in a measured difference: a centre and an interval, with few assumptions."""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

LEVEL = 0.95
_ALL_SUBSETS = 12  # with more differences, a random sample of the subsets replaces all of them
_DRAWN = 4095


def centre(differences: Sequence[float]) -> float:
    """The Hodges-Lehmann estimator: the median of the means of all pairs. One disturbed run moves it little."""
    values = np.asarray(differences, float)
    first, second = np.triu_indices(len(values))
    return float(np.median((values[first] + values[second]) / 2))


def fewest(level: float = LEVEL) -> int:
    """The smallest number of differences for an interval of this level: 6 for 95 %."""
    return math.ceil(math.log2(2 / (1 - level)) - 1e-9)


def interval(differences: Sequence[float], level: float = LEVEL) -> tuple[float, float] | None:
    """Hartigan's typical values: the true centre is equally likely to be in each gap between neighbouring means of all
    subsets. Valid for few differences and for any symmetric noise; the difference of two runs that only chance tells
    apart is symmetric. None: too few differences for this level."""
    values = np.asarray(differences, float)
    if len(values) < fewest(level):
        return None
    subsets = _subsets(len(values))
    means = np.sort(subsets @ values)
    outside = int((1 - level) / 2 * (len(means) + 1) + 1e-9)
    return float(means[outside - 1]), float(means[len(means) - outside])


@cache
def _subsets(count: int) -> np.ndarray:
    """One row per subset; its product with the differences is the subset's mean."""
    if count <= _ALL_SUBSETS:
        numbers = np.arange(1, 2**count)[:, None]
        chosen = (numbers >> np.arange(count)) & 1
    else:
        drawn = np.random.default_rng(count).integers(0, 2, (2 * _DRAWN, count))
        chosen = np.unique(drawn[drawn.any(axis=1)], axis=0)
        chosen = np.random.default_rng(1).permutation(chosen)[:_DRAWN]
    return chosen / chosen.sum(axis=1, keepdims=True)
