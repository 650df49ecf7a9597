"""Decides which settings leave a race. This only saves runs: the final claims rest on runs made afterwards."""

import numpy as np
from scipy.special import stdtr

LEVEL = 0.05
FIRST_LOOK = 2  # blocks; one block cannot show the noise


def worse_than(losses: np.ndarray, chances: float = LEVEL) -> np.ndarray:
    """For settings i and j, whether j's loss is significantly larger than i's. `losses` has a row for each block and a column
    for each setting. The effects of blocks are removed, and the rest is the noise (a randomised complete block design).
    The level of each pair's t-test is divided by the number of pairs, as in irace's t-test race."""
    blocks, settings = losses.shape
    if blocks < FIRST_LOOK or settings < 2:
        return np.zeros((settings, settings), bool)
    means = losses.mean(axis=0)
    residuals = losses - means - losses.mean(axis=1, keepdims=True) + losses.mean()
    freedom = (blocks - 1) * (settings - 1)
    error = np.sqrt((residuals**2).sum() / freedom * 2 / blocks)
    gaps = means[None, :] - means[:, None]
    tiny = 1e-9 * (1 + np.abs(losses).max())  # differences by rounding do not count
    if error <= tiny:
        return gaps > tiny
    return stdtr(freedom, -gaps / error) < chances / (settings * (settings - 1))
