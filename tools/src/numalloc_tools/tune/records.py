"""What has been measured: one answer for each run, found again by setting and block."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from numalloc_tools.launch import Setting
from numalloc_tools.tune.aims import Aim, Scale, scale_of
from numalloc_tools.tune.intervals import LEVEL, centre, interval

WARM_UP, RACE, CONFIRMATION = "warm-up", "race", "confirmation"


@dataclass(frozen=True)
class Request:
    """A run that the search wants."""

    setting: Setting
    phase: str
    stage: str
    block: int


@dataclass(frozen=True)
class Answer:
    """What came of it: a value for each aim, or why there is none."""

    values: tuple[float, ...] = ()
    seconds: float = 1.0
    failure: str = ""


@dataclass(frozen=True)
class Comparison:
    """A setting beside another one, over the blocks in which both ran. Less than 0 is better."""

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
        """As a part: 0.1 is a tenth better. Where values are no ratios, of what is usual."""
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
        """A row a block, a column a setting."""
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
