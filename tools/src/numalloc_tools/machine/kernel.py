"""The kernel's version, and what of it the library uses."""

import os
import platform
import re
from dataclasses import dataclass

from numalloc_tools.machine.files import Files


@dataclass(frozen=True)
class Feature:
    name: str
    since: tuple[int, int]
    without: str  # what the library does instead
    present: bool


@dataclass(frozen=True)
class Kernel:
    release: str
    version: tuple[int, int] | None
    features: list[Feature]
    libc: str  # of this machine; "" where it was not asked

    @property
    def missing(self) -> list[Feature]:
        return [feature for feature in self.features if not feature.present]

    @property
    def libc_version(self) -> tuple[int, int] | None:
        return _version(self.libc)


_FEATURES = (
    ("MPOL_WEIGHTED_INTERLEAVE", (6, 9), "memory=interleave gives each node as many pages as the next, whatever its bandwidth"),
    ("set_mempolicy_home_node", (5, 17), "with memory=bind:LIST pages come from the nodes in their order, not from the nearest"),
    ("MPOL_PREFERRED_MANY", (5, 15), "numactl --preferred-many does not work; the library itself does without"),
    ("MADV_POPULATE_WRITE", (5, 14), "memory_binding=strict cannot have its pages before it promises them"),
    ("MREMAP_DONTUNMAP", (5, 7), "a large block that grows is copied"),
    ("rseq", (4, 18), "which CPU a thread runs on is asked of the kernel, not read from memory"),
)


def read(files: Files) -> Kernel:
    release = files.text("/proc/sys/kernel/osrelease") or (platform.release() if files.real else "")
    version = _version(release)
    features = [Feature(name, since, without, version is None or version >= since) for name, since, without in _FEATURES]
    return Kernel(release, version, features, (os.confstr("CS_GNU_LIBC_VERSION") or "") if files.real else "")


def _version(text: str) -> tuple[int, int] | None:
    match = re.search(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None
