"""Finds an allocator of this machine by name or path, and the libraries to preload with it."""

import os
from pathlib import Path

from numalloc_tools.allocators import crates
from numalloc_tools.allocators.allocator import BASELINE, DEBIAN, OURS, PACKAGED, Allocator, family
from numalloc_tools.preload import existing, found
from numalloc_tools.problem import Problem

NAMES = (*PACKAGED, *crates.RECIPES)
_BINDING = "libnumalloc-binding.so"
_HARDENED = "libnumalloc-hardened.so"
_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
_LISTS = {"GLIBC_TUNABLES": ":", "MALLOC_CONF": ","}  # variables that hold several settings, and their separator


def find(name: str) -> Allocator:
    if name == BASELINE:
        return Allocator(name)
    if name == OURS:
        return _of(name, our_library())
    if name in DEBIAN:
        if (path := installed(name)) is None:
            package = DEBIAN[name]
            raise Problem(f"--allocator: {name} is not installed ({package.libraries[0]}); install the Debian package {package.said}")
        return _of(name, path)
    if name in crates.RECIPES:
        library = crates.built(name)
        if library is None:
            raise Problem(f"--allocator: {name} is not built yet; build it with numalloc bench --build, which takes minutes")
        return _of(name, library)
    if "/" in name or os.path.isfile(name):
        return _of(name, Path(name))
    raise Problem(f"--allocator: '{name}' is unknown; accepted: {', '.join(NAMES)}, or the path of a library")


def our_library() -> Path:
    return found("--allocator")


def installed(name: str) -> Path | None:
    """The library of Debian's package."""
    paths = (Path(folder, file) for file in DEBIAN[name].libraries for folder in _FOLDERS)
    return next((path.resolve() for path in paths if path.is_file()), None)


def binding_library(library: Path) -> Path | None:
    """The binding library in the folder of numalloc's own."""
    path = library.with_name(_BINDING)
    return path if path.is_file() else None


def binding_for(allocator: Allocator) -> Path:
    beside = allocator.library if allocator.ours and allocator.library else our_library()
    if (path := binding_library(beside)) is None:
        raise Problem(f"--threads: {_BINDING} is not in the folder of {beside}, with which it is built and installed")
    return existing(path, "--threads")


def joined(variable: str, value: str, present: str | None) -> str:
    """Keeps the user's own settings in variables that can hold several."""
    between = _LISTS.get(variable)
    return f"{present}{between}{value}" if between and present else value


def without_allocators(preload: str) -> list[str]:
    """The libraries that the user preloads, without allocators: the first malloc would win."""
    return [path for path in _paths(preload) if not family(Path(path))]


def hardened(preload: str) -> Path | None:
    """The hardened library among those that the user preloads. It is numalloc too, so numalloc does not replace it."""
    for path in _paths(preload):
        name = os.path.basename(path)
        if name.startswith(_HARDENED):
            # The loader looks for a bare name in its own folders; numalloc's libraries are all installed in one of them.
            return existing(our_library().with_name(name) if path == name else Path(path), "LD_PRELOAD")
    return None


def _paths(preload: str) -> list[str]:
    return preload.replace(":", " ").split()


def _of(name: str, library: Path) -> Allocator:
    library = existing(library, "--allocator")
    if library.name.startswith(_BINDING):
        raise Problem(f"--allocator: {library} binds threads and allocates nothing; accepted: --binding-only")
    return Allocator(name, (library,))
