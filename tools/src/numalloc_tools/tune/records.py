"""The measurements: one result per run, indexed by setting and block."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from numalloc_tools.launch import Setting
from numalloc_tools.tune.aims import Aim, Scale, scale_of
from numalloc_tools.tune.intervals import LEVEL, centre, interval

WARM_UP, RACE, CONFIRMATION = "warm-up", "race", "confirmation"


@dataclass(frozen=True)
class Request:
    """A run that the search requests."""

    setting: Setting
    phase: str
    stage: str
    block: int


@dataclass(frozen=True)
class Answer:
    """The result of a run: a value for each aim, or the reason why there is none."""

    values: tuple[float, ...] = ()
    seconds: float = 1.0
    failure: str = ""


@dataclass(frozen=True)
class Comparison:
    """Compares two settings over the blocks in which both ran. Below 0 is better."""

    blocks: int
    difference: float
    interval: tuple[float, float] | None
    scale: Scale

    @property
    def better(self) -> bool:
        return self.interval is not None and self.interval[1] < 0

    @property
    def worse(self) -> bool:
        return self.interval is not None and self.interval[0] > 0

    def gain(self) -> float:
        """As a fraction: 0.1 is 10 % better. If values are not ratios, of the usual value."""
        return 1 - np.exp(self.difference) if self.scale.ratios else -self.difference

    def ratio(self) -> float:
        return self.scale.shown(self.difference)

    def bounds(self) -> tuple[float, float] | None:
        return self.scale.shown_interval(self.interval) if self.interval else None


@dataclass
class Records:
    aims: Sequence[Aim]
    values: dict[Setting, dict[int, tuple[float, ...]]] = field(default_factory=dict)
    phases: dict[int, str] = field(default_factory=dict)  # of each block

    def add(self, request: Request, answer: Answer) -> None:
        self.phases[request.block] = request.phase
        self.values.setdefault(request.setting, {})[request.block] = answer.values

    def scale(self, aim: int) -> Scale:
        return scale_of(self.aims[aim], (values[aim] for blocks in self.values.values() for values in blocks.values()))

    def losses(self, aim: int, settings: Sequence[Setting], blocks: Sequence[int]) -> np.ndarray:
        """One row per block, one column per setting."""
        loss = self.scale(aim).loss
        return np.array([[loss(self.values[setting][block][aim]) for setting in settings] for block in blocks])

    def compared(self, setting: Setting, other: Setting, aim: int = 0, phase: str = "", level: float = LEVEL) -> Comparison | None:
        """`phase`: only its blocks count."""
        ours, theirs = self.values.get(setting, {}), self.values.get(other, {})
        blocks = [block for block in ours if block in theirs and phase in ("", self.phases[block])]
        if not blocks:
            return None
        scale = self.scale(aim)
        differences = [scale.loss(ours[block][aim]) - scale.loss(theirs[block][aim]) for block in blocks]
        return Comparison(len(blocks), centre(differences), interval(differences, level), scale)
