"""Who falls out of a race. This only spares runs: what is claimed in the end rests on runs made afterwards."""

import numpy as np
from scipy.special import stdtr

LEVEL = 0.05
FIRST_LOOK = 2  # blocks; with one there is no telling chance from anything


def worse_than(losses: np.ndarray, chances: float = LEVEL) -> np.ndarray:
    """For settings i and j whether j's loss is beyond chance larger than i's. `losses` has a row for each block and a
    column for each setting. Blocks are taken out and what remains is the noise (a randomised complete block design),
    and the t-test of each pair is held to the level divided by the number of pairs, as irace's t-test race does."""
    blocks, settings = losses.shape
    if blocks < FIRST_LOOK or settings < 2:
        return np.zeros((settings, settings), bool)
    means = losses.mean(axis=0)
    residuals = losses - means - losses.mean(axis=1, keepdims=True) + losses.mean()
    freedom = (blocks - 1) * (settings - 1)
    error = np.sqrt((residuals**2).sum() / freedom * 2 / blocks)
    gaps = means[None, :] - means[:, None]
    tiny = 1e-9 * (1 + np.abs(losses).max())  # rounding is no difference
    if error <= tiny:
        return gaps > tiny
    return stdtr(freedom, -gaps / error) < chances / (settings * (settings - 1))
