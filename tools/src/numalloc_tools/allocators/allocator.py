"""An allocator: its libraries, and the environment and calls for a program that uses it."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from numalloc_tools.allocators import crates
from numalloc_tools.machine.calls import Call

OURS = "numalloc"
BASELINE = "glibc"


class Package(NamedTuple):
    """Its names in Debian's and Ubuntu's releases, that of Debian 12 first; and those of its library."""

    names: tuple[str, ...]
    libraries: tuple[str, ...]

    @property
    def said(self) -> str:
        return " or ".join(self.names)


DEBIAN = {
    "jemalloc": Package(("libjemalloc2",), ("libjemalloc.so.2",)),
    "tcmalloc": Package(("libtcmalloc-minimal4", "libtcmalloc-minimal4t64"), ("libtcmalloc_minimal.so.4",)),
    "mimalloc": Package(("libmimalloc2.0", "libmimalloc3"), ("libmimalloc.so.2", "libmimalloc.so.3")),
    "tbbmalloc": Package(("libtbbmalloc2",), ("libtbbmalloc_proxy.so.2",)),
}
PACKAGED = (OURS, BASELINE, *DEBIAN)
NAMES = (OURS, BASELINE, *crates.RECIPES, *DEBIAN)
BOUND = "+binding"  # after a name: libnumalloc-binding.so binds the threads
_FAMILIES = (
    "numalloc",
    "jemalloc",
    "tcmalloc",
    "mimalloc",
    "tbbmalloc",
    "snmalloc",
    "rpmalloc",
    "hoard",
)  # libraries are named lib<family>...
_HUGE_PAGES = {
    "numalloc": {"NUMALLOC_THP": "on"},
    "jemalloc": {"MALLOC_CONF": "thp:always"},
    # Two names: before version 2.1, and since.
    "mimalloc": {"MIMALLOC_LARGE_OS_PAGES": "1", "MIMALLOC_ALLOW_LARGE_OS_PAGES": "1", "MIMALLOC_ALLOW_THP": "1"},
}
_HUGE_PAGES_OF_GLIBC = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # since 2.35


@dataclass(frozen=True)
class Allocator:
    name: str
    libraries: tuple[Path, ...] = ()  # in the order of preloading; empty: the C library's malloc, or the program's own
    version: str = ""
    options: dict[str, str] = field(default_factory=dict)  # options of numalloc or of its binding
    missing: str = ""  # the reason why it cannot run, and the remedy
    also: dict[str, str] = field(default_factory=dict)  # further variables
    calls: tuple[Call, ...] = ()  # a lever's system calls before the start of the program

    @property
    def library(self) -> Path | None:
        """Its own library: others, such as the binding, are preloaded before it."""
        return self.libraries[-1] if self.libraries else None

    @property
    def preload(self) -> str:
        return ":".join(map(str, self.libraries))

    @property
    def ours(self) -> bool:
        return self.library is not None and family(self.library) == OURS

    @property
    def huge_pages(self) -> dict[str, str]:
        """The variables that request huge pages; empty: it has no switch."""
        if self.library:
            return _HUGE_PAGES.get(family(self.library), {})
        return _HUGE_PAGES_OF_GLIBC if _glibc_version() >= (2, 35) else {}

    def environment(self) -> dict[str, str]:
        """The user's environment, without variables that would affect the measurement. The launcher adds the preload."""
        return plain_environment() | self.variables()

    def enter(self) -> None:
        """Called in the process that becomes the launcher: its children inherit policies."""
        for call in self.calls:
            call.make()

    def variables(self) -> dict[str, str]:
        return {f"NUMALLOC_{name.upper()}": value for name, value in self.options.items()} | self.also

    def preloading(self) -> dict[str, str]:
        return self.variables() | ({"LD_PRELOAD": self.preload} if self.libraries else {})


def plain_environment() -> dict[str, str]:
    """The environment of a client that generates the load."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("NUMALLOC_")}


def shown(name: str) -> str:
    """The name in headings: of a variant of numalloc, the change."""
    return name.removeprefix(f"{OURS}:")


def family(library: Path) -> str:
    return next((one for one in _FAMILIES if library.name.startswith(f"lib{one}")), "")


def _glibc_version() -> tuple[int, ...]:
    words = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    return tuple(int(part) for part in words[-1].split(".") if part.isdigit()) if words else ()
