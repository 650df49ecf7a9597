"""The reasons why a setting is better, as far as counters show: significant differences from the baseline."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from numalloc_tools.tune.aims import Aim, scale_of
from numalloc_tools.tune.intervals import LEVEL, centre, interval
from numalloc_tools.tune.measure import Run
from numalloc_tools.tune.records import Comparison
from numalloc_tools.tune.tree import Places

COUNTERS = {
    "user": ("user time", "s"),
    "system": ("system time", "s"),
    "minor_faults": ("page faults", ""),
    "major_faults": ("major page faults (disk reads)", ""),
    "waits": ("voluntary context switches", ""),
    "preemptions": ("involuntary context switches", ""),
    "peak_bytes": ("peak memory", "B"),
}


@dataclass(frozen=True)
class Finding:
    aim: Aim
    ours: float  # medians
    theirs: float
    comparison: Comparison

    @property
    def differs(self) -> bool:
        return self.comparison.better or self.comparison.worse


def findings(ours: Mapping[int, Run], theirs: Mapping[int, Run]) -> list[Finding]:
    """Over the blocks in which both ran. The intervals hold together, so each is wider than it would be alone."""
    blocks = sorted(ours.keys() & theirs.keys())
    found = []
    for name, (words, unit) in COUNTERS.items():
        pairs = [(getattr(ours[block], name), getattr(theirs[block], name)) for block in blocks]
        if name == "peak_bytes":
            pairs = [pair for pair in pairs if all(pair)]  # 0: not sampled
        if not pairs or not any(one or other for one, other in pairs):
            continue
        aim = Aim(words, unit)
        scale = scale_of(aim, [value for pair in pairs for value in pair])
        differences = [scale.loss(one) - scale.loss(other) for one, other in pairs]
        bounds = interval(differences, 1 - (1 - LEVEL) / len(COUNTERS))
        comparison = Comparison(len(pairs), centre(differences), bounds, scale)
        found.append(Finding(aim, median(one for one, _ in pairs), median(other for _, other in pairs), comparison))
    return found


@dataclass(frozen=True)
class Seen:
    """The samples of one run: the peak of huge pages, and the nodes in the sample with the most memory."""

    huge: int  # bytes
    fullest: float  # the fullest node's fraction of the memory
    unattended: float  # the fraction of memory on nodes where no thread ran
    pages: Counter[int]  # bytes by node


def seen(looks: Sequence[Places]) -> Seen | None:
    looks = [look for look in looks if look.pages or look.huge]
    if not looks:
        return None
    most = max(looks, key=lambda look: sum(look.pages.values()))
    return Seen(max(look.huge for look in looks), most.fullest(), most.unattended(), most.pages)
