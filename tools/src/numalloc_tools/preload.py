"""Libraries to preload: ours as it was built here, and those that the user names."""

from contextlib import suppress
from pathlib import Path

from numalloc_tools.problem import Problem

_ELF = b"\x7fELF"


def built_here(preset: str = "release") -> Path:
    """The library in the build folder of the working tree that the current folder belongs to."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        for build in (f"build/{preset}", *(["build"] if preset == "release" else [])):
            library = folder / build / "libnumalloc.so"
            if library.is_file():
                return library.resolve()
    raise Problem(
        f"libnumalloc.so is not in build/{preset} here or above; build it with "
        f"cmake --preset {preset} && cmake --build --preset {preset}, or name it with --library"
    )


def our_library(given: Path | None) -> Path:
    return existing(given or built_here(), "--library")


def existing(path: Path, what: str) -> Path:
    """`what`: the option that named it."""
    resolved = path.resolve()
    if not resolved.is_file():
        raise Problem(f"{what}: {path} is not a file; accepted: a shared library such as build/release/libnumalloc.so")
    if " " in str(resolved) or ":" in str(resolved):
        raise Problem(f"{what}: {path} has a space or colon, which LD_PRELOAD cannot name; accepted: a path without them")
    with suppress(OSError):
        with open(resolved, "rb") as file:
            if file.read(len(_ELF)) != _ELF:
                raise Problem(f"{what}: {path} is no library; accepted: a shared library such as build/release/libnumalloc.so")
    return resolved
