"""An allocator by its name or path: the libraries to preload, and the switch it has for huge pages."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from numalloc_tools import preload
from numalloc_tools.bench import crates
from numalloc_tools.bench.allocators import FOLDERS
from numalloc_tools.lab.allocators import DEBIAN, OURS
from numalloc_tools.preload import existing
from numalloc_tools.problem import Problem

GLIBC = "glibc"
NAMES = (OURS, GLIBC, *DEBIAN, *crates.RECIPES)
_BINDING = "libnumalloc-binding.so"
_FAMILIES = ("numalloc", "jemalloc", "tcmalloc", "mimalloc", "tbbmalloc", "snmalloc", "rpmalloc", "hoard")  # of libraries: lib<family>...
_HUGE_PAGES = {
    "numalloc": {"NUMALLOC_THP": "on"},
    GLIBC: {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    "jemalloc": {"MALLOC_CONF": "thp:always"},
    # Two names: of versions before 2.1 and since.
    "mimalloc": {"MIMALLOC_LARGE_OS_PAGES": "1", "MIMALLOC_ALLOW_LARGE_OS_PAGES": "1", "MIMALLOC_ALLOW_THP": "1"},
}
_LISTS = {"GLIBC_TUNABLES": ":", "MALLOC_CONF": ","}  # variables that say several things: what stands between them


@dataclass(frozen=True)
class Allocator:
    name: str
    library: Path | None = None  # none: the C library's own, or whatever the program brings
    family: str = ""
    huge_pages: dict[str, str] = field(default_factory=dict)  # the variables that switch them on; empty: it has no switch

    @property
    def ours(self) -> bool:
        return self.family == OURS


def find(name: str) -> Allocator:
    if name == GLIBC:
        return Allocator(name, None, GLIBC, _HUGE_PAGES[GLIBC] if _glibc_version() >= (2, 35) else {})
    if name == OURS:
        return _of(name, our_library())
    if name in DEBIAN:
        return _of(name, _installed(name))
    if name in crates.RECIPES:
        library = crates.built(name)
        if library is None:
            raise Problem(f"--allocator: {name} is not built yet; build it with numalloc bench --build, which takes minutes")
        return _of(name, library)
    if "/" in name or os.path.isfile(name):
        return _of(name, Path(name))
    raise Problem(f"--allocator: '{name}' is unknown; accepted: {', '.join(NAMES)}, or the path of a library")


def our_library() -> Path:
    return preload.found("--allocator")


def binding_library(allocator: Allocator) -> Path:
    beside = allocator.library if allocator.ours and allocator.library else our_library()
    path = beside.with_name(_BINDING)
    if not path.is_file():
        raise Problem(f"--threads: {_BINDING} is not beside {beside}; it is built and installed with it")
    return existing(path, "--threads")


def joined(variable: str, value: str, present: str | None) -> str:
    """The user's own words stay where the variable has room for several."""
    between = _LISTS.get(variable)
    return f"{present}{between}{value}" if between and present else value


def without_allocators(preload: str) -> list[str]:
    """What the user preloads already, but for allocators: the first malloc would win."""
    paths = preload.replace(":", " ").split()
    return [path for path in paths if not _family(Path(path))]


def _of(name: str, library: Path) -> Allocator:
    library = existing(library, "--allocator")
    family = _family(library)
    if library.name.startswith(_BINDING):
        raise Problem(f"--allocator: {library} binds threads and allocates nothing; accepted: --binding-only")
    return Allocator(name, library, family, _HUGE_PAGES.get(family, {}))


def _family(library: Path) -> str:
    return next((family for family in _FAMILIES if library.name.startswith(f"lib{family}")), "")


def _installed(name: str) -> Path:
    package, file = DEBIAN[name]
    for folder in FOLDERS:
        path = Path(folder, file)
        if path.is_file():
            return path.resolve()
    raise Problem(f"--allocator: {name} is not installed ({file}); install the Debian package {package}")


def _glibc_version() -> tuple[int, ...]:
    words = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    return tuple(int(part) for part in words[-1].split(".") if part.isdigit()) if words else ()
