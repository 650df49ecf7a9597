"""The kernel's version, and the features of it that the library uses."""

import os
import platform
import re
from dataclasses import dataclass

from numalloc_tools.machine.files import Files


@dataclass(frozen=True)
class Feature:
    name: str
    since: tuple[int, int]
    without: str  # the library's behaviour without it
    present: bool


@dataclass(frozen=True)
class Kernel:
    release: str
    version: tuple[int, int] | None
    features: list[Feature]
    libc: str  # of this machine; "" if unknown

    @property
    def missing(self) -> list[Feature]:
        return [feature for feature in self.features if not feature.present]

    @property
    def libc_version(self) -> tuple[int, int] | None:
        return _version(self.libc)


_FEATURES = (
    ("MPOL_WEIGHTED_INTERLEAVE", (6, 9), "memory=interleave gives each node as many pages as the next, whatever its bandwidth"),
    (
        "set_mempolicy_home_node",
        (5, 17),
        "with memory=bind:LIST pages come from the list's nodes in their order, not from the nearest node",
    ),
    ("MPOL_PREFERRED_MANY", (5, 15), "numactl --preferred-many does not work; the library does not need it"),
    ("MADV_POPULATE_WRITE", (5, 14), "memory_binding=strict cannot allocate pages before malloc returns them"),
    ("MREMAP_DONTUNMAP", (5, 7), "a large block is copied when it grows"),
    ("rseq", (4, 18), "the library asks the kernel for a thread's CPU, instead of reading it from memory"),
)


def read(files: Files) -> Kernel:
    release = files.text("/proc/sys/kernel/osrelease") or (platform.release() if files.real else "")
    version = _version(release)
    features = [Feature(name, since, without, version is None or version >= since) for name, since, without in _FEATURES]
    return Kernel(release, version, features, (os.confstr("CS_GNU_LIBC_VERSION") or "") if files.real else "")


def _version(text: str) -> tuple[int, int] | None:
    match = re.search(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None
