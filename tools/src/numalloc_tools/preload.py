"""Libraries to preload: numalloc's own, built here or installed, and those that the user names."""

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from numalloc_tools.problem import Problem

_ELF = b"\x7fELF"
_PACKAGE = Path(__file__).resolve().parent
# The second name exists without the files for development.
_NAMES = ("libnumalloc.so", "libnumalloc.so.0")


def built_here(preset: str = "release") -> Path:
    """The library in the build folder of the current folder's working tree."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise Problem("the current folder has been deleted; accepted: an existing one, or --library") from None
    for folder in (here, *here.parents):
        for build in (f"build/{preset}", *(["build", "build/demo"] if preset == "release" else [])):
            library = folder / build / "libnumalloc.so"
            if library.is_file():
                return library.resolve()
    raise Problem(
        f"libnumalloc.so is not in build/{preset} here or above; build it with "
        f"cmake --preset {preset} && cmake --build --preset {preset}, or name it with --library"
    )


def found(what: str = "--library") -> Path:
    """numalloc's library: built here or in this program's tree, otherwise installed with the tools or in the loader's path."""
    with suppress(Problem):
        return built_here()
    for folder in _folders():
        for name in _NAMES:
            if (folder / name).is_file():
                return (folder / name).resolve()
    raise Problem(
        f"{what}: numalloc is neither built here nor installed; build it with cmake --preset release && cmake --build"
        f" --preset release, or give its path to {what}"
    )


def _folders() -> Iterator[Path]:
    yield _PACKAGE / "lib"  # of a wheel
    for folder in _PACKAGE.parents:
        yield folder / "build/release"
        yield folder / "build/demo"  # scripts/demo.sh
    for text in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if text:
            yield Path(text)
    kinds = [sysconfig.get_config_var("MULTIARCH") or "", "", "lib64"]
    for prefix in (Path(sys.prefix), Path("/usr/local"), Path("/usr")):
        for kind in kinds:
            yield prefix / "lib64" if kind == "lib64" else prefix / "lib" / kind


def our_library(given: Path | None) -> Path:
    return existing(given or found(), "--library")


def existing(path: Path, what: str) -> Path:
    """`what`: the option that named it."""
    resolved = path.resolve()
    if not resolved.is_file():
        raise Problem(f"{what}: {path} is not a file; accepted: a shared library such as build/release/libnumalloc.so")
    if " " in str(resolved) or ":" in str(resolved):
        raise Problem(f"{what}: {path} has a space or colon, which LD_PRELOAD does not allow; accepted: a path without them")
    with suppress(OSError):
        with open(resolved, "rb") as file:
            if file.read(len(_ELF)) != _ELF:
                raise Problem(f"{what}: {path} is not a library; accepted: a shared library such as build/release/libnumalloc.so")
    return resolved
