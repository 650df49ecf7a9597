"""The tables of a profile: by function, by stack, by nodes."""

import math
from collections import defaultdict
from dataclasses import dataclass

from numalloc_tools.profile.samples import Sample


@dataclass
class Amount:
    objects: int = 0
    bytes: int = 0
    records: float = 0.0
    variance: float = 0.0  # of the bytes

    def add(self, sample: Sample) -> None:
        self.objects += sample.objects
        self.bytes += sample.bytes
        self.records += sample.records
        self.variance += sample.variance

    @property
    def error(self) -> float:
        """The standard deviation as a part of the bytes: of objects of one small size, one over the root of the records."""
        return math.sqrt(self.variance) / self.bytes if self.bytes else 0.0


@dataclass
class Share:
    """An amount, and the part of it that is known to be remote from the thread that requested it."""

    flat: Amount
    cumulative: Amount
    remote_pages: int = 0  # bytes whose pages are on another node than the thread that allocated them
    remote_free: int = 0  # bytes that a thread of another node freed

    @property
    def remote_part(self) -> float:
        return self.remote_pages / self.cumulative.bytes if self.cumulative.bytes else 0.0

    @property
    def freed_remotely_part(self) -> float:
        return self.remote_free / self.cumulative.bytes if self.cumulative.bytes else 0.0

    def count(self, sample: Sample, flat: bool) -> None:
        self.cumulative.add(sample)
        if flat:
            self.flat.add(sample)
        self.remote_pages += sample.bytes if is_remote(sample) else 0
        self.remote_free += sample.bytes if sample.places.get("remote_free") == "yes" else 0


def is_remote(sample: Sample) -> bool:
    return sample.places.get("remote_pages") == "yes"


def _none() -> Share:
    return Share(Amount(), Amount())


def total(samples: list[Sample]) -> Share:
    whole = _none()
    for sample in samples:
        whole.count(sample, flat=True)
    return whole


def by_function(samples: list[Sample]) -> list[tuple[str, Share]]:
    """Sorted by the bytes that a function itself allocates, then by the bytes of its callees."""
    shares: dict[str, Share] = defaultdict(_none)
    for sample in samples:
        for function in set(sample.stack):
            shares[function].count(sample, flat=function == sample.stack[0])
    return sorted(shares.items(), key=lambda one: (-one[1].flat.bytes, -one[1].cumulative.bytes, one[0]))


def by_stack(samples: list[Sample]) -> list[tuple[tuple[str, ...], Share]]:
    shares: dict[tuple[str, ...], Share] = defaultdict(_none)
    for sample in samples:
        shares[sample.stack].count(sample, flat=True)
    return sorted(shares.items(), key=lambda one: (-one[1].flat.bytes, one[0]))


def by_place(samples: list[Sample]) -> list[tuple[tuple[str, str, str], Share]]:
    """By the node of the allocating thread, of the pages, and of the freeing thread; "" if not freed."""
    shares: dict[tuple[str, str, str], Share] = defaultdict(_none)
    for sample in samples:
        places = sample.places
        key = places.get("node_alloc", "unknown"), places.get("node_pages", "unknown"), places.get("node_free", "")
        shares[key].count(sample, flat=True)
    return sorted(shares.items(), key=lambda one: (-one[1].flat.bytes, one[0]))


def remote_stacks(samples: list[Sample]) -> list[tuple[tuple[str, ...], Share]]:
    """The stacks whose pages are on another node than the threads that allocated them, most bytes first."""
    stacks = by_stack([sample for sample in samples if is_remote(sample)])
    return [(stack, share) for stack, share in stacks if share.remote_pages]
