"""The processors that a machine may have, and their differences for the lab."""

import platform
from dataclasses import dataclass, field

from numalloc_tools.problem import Problem


@dataclass(frozen=True)
class Architecture:
    name: str  # as the kernel and QEMU call it
    debian: str  # as Debian calls it
    triplet: str  # of its compilers and of the folders with its libraries
    elf_machine: int
    loader: str  # the dynamic linker, whose path is in programs
    qemu_package: str
    board: str  # QEMU's -machine
    translated_cpu: str  # -cpu for QEMU's translator
    console: str
    streams: tuple[str, str]  # the serial card's ports in the guest
    most_nodes: int  # of Debian's kernels
    kernels: dict[str, str] = field(hash=False, default_factory=dict)  # Debian's package for each page size

    @property
    def qemu(self) -> str:
        return f"qemu-system-{self.name}"

    @property
    def foreign(self) -> bool:
        return self.name != platform.machine()

    @property
    def cross_folder(self) -> str:
        """The folder of its libraries in Debian's packages for cross-compilers."""
        return f"/usr/{self.triplet}/lib"


X86_64 = Architecture(
    "x86_64",
    "amd64",
    "x86_64-linux-gnu",
    62,
    "/lib64/ld-linux-x86-64.so.2",
    "qemu-system-x86",
    "pc",
    # rep stosb and rep movsb are slow in the translator; without these flags the C library avoids them.
    "max,-erms,-fsrm",
    "ttyS0",
    ("ttyS1", "ttyS2"),
    32,
    {"4K": "linux-image-cloud-amd64"},
)
AARCH64 = Architecture(
    "aarch64",
    "arm64",
    "aarch64-linux-gnu",
    183,
    "/lib/ld-linux-aarch64.so.1",
    "qemu-system-arm",
    "virt,gic-version=3",
    # Signs pointers by a fast function instead of the architecture's own, which is slow to translate.
    "max,pauth-impdef=on",
    "ttyAMA0",
    ("ttyS0", "ttyS1"),
    16,
    {"4K": "linux-image-cloud-arm64", "16K": "linux-image-arm64-16k"},
)
ALL = {one.name: one for one in (X86_64, AARCH64)}
NAMES = tuple(ALL)


def named(name: str) -> Architecture:
    """The host's for an empty name."""
    if found := ALL.get(name or platform.machine()):
        return found
    raise Problem(f"--arch: '{name or platform.machine()}' is unknown; accepted: {', '.join(NAMES)}")
