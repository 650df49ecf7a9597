"""An allocator: its libraries, and what else a program that runs under it is given."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from numalloc_tools.allocators import crates
from numalloc_tools.machine.calls import Call

OURS = "numalloc"
BASELINE = "glibc"
DEBIAN = {  # package and library of each
    "jemalloc": ("libjemalloc2", "libjemalloc.so.2"),
    "tcmalloc": ("libtcmalloc-minimal4", "libtcmalloc_minimal.so.4"),
    "mimalloc": ("libmimalloc2.0", "libmimalloc.so.2"),
    "tbbmalloc": ("libtbbmalloc2", "libtbbmalloc_proxy.so.2"),
}
PACKAGED = (OURS, BASELINE, *DEBIAN)
NAMES = (OURS, BASELINE, *crates.RECIPES, *DEBIAN)
BOUND = "+binding"  # behind a name: threads bound by libnumalloc-binding.so
_FAMILIES = ("numalloc", "jemalloc", "tcmalloc", "mimalloc", "tbbmalloc", "snmalloc", "rpmalloc", "hoard")  # of libraries: lib<family>...
_HUGE_PAGES = {
    "numalloc": {"NUMALLOC_THP": "on"},
    "jemalloc": {"MALLOC_CONF": "thp:always"},
    # Two names: of versions before 2.1 and since.
    "mimalloc": {"MIMALLOC_LARGE_OS_PAGES": "1", "MIMALLOC_ALLOW_LARGE_OS_PAGES": "1", "MIMALLOC_ALLOW_THP": "1"},
}
_HUGE_PAGES_OF_GLIBC = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # since 2.35


@dataclass(frozen=True)
class Allocator:
    name: str
    libraries: tuple[Path, ...] = ()  # in the order of preloading; none: the C library's own, or whatever the program brings
    version: str = ""
    options: dict[str, str] = field(default_factory=dict)  # of numalloc or of its binding
    missing: str = ""  # why it cannot run, and what to do about it
    also: dict[str, str] = field(default_factory=dict)  # further variables
    calls: tuple[Call, ...] = ()  # what a lever asks of the kernel before the program is started

    @property
    def library(self) -> Path | None:
        """Its own: others, such as the binding, are preloaded before it."""
        return self.libraries[-1] if self.libraries else None

    @property
    def preload(self) -> str:
        return ":".join(map(str, self.libraries))

    @property
    def ours(self) -> bool:
        return self.library is not None and family(self.library) == OURS

    @property
    def huge_pages(self) -> dict[str, str]:
        """The variables that switch them on; empty: it has no switch."""
        if self.library:
            return _HUGE_PAGES.get(family(self.library), {})
        return _HUGE_PAGES_OF_GLIBC if _glibc_version() >= (2, 35) else {}

    def environment(self) -> dict[str, str]:
        """The user's, less what would change what is measured. The launcher adds the preload."""
        return plain_environment() | self.variables()

    def enter(self) -> None:
        """In the process that becomes the launcher: policies go on to what it starts."""
        for call in self.calls:
            call.make()

    def variables(self) -> dict[str, str]:
        return {f"NUMALLOC_{name.upper()}": value for name, value in self.options.items()} | self.also

    def preloading(self) -> dict[str, str]:
        return self.variables() | ({"LD_PRELOAD": self.preload} if self.libraries else {})


def plain_environment() -> dict[str, str]:
    """For whoever brings the load."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("NUMALLOC_")}


def shown(name: str) -> str:
    """In headings: a variant of numalloc is told by what it changes."""
    return name.removeprefix(f"{OURS}:")


def family(library: Path) -> str:
    return next((one for one in _FAMILIES if library.name.startswith(f"lib{one}")), "")


def _glibc_version() -> tuple[int, ...]:
    words = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    return tuple(int(part) for part in words[-1].split(".") if part.isdigit()) if words else ()
