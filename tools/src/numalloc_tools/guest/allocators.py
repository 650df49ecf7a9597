"""Allocators for a machine of any architecture: numalloc as built for it, its C library's, and Debian's packages."""

from pathlib import Path

from numalloc_tools.allocators.allocator import BASELINE, DEBIAN, OURS, PACKAGED, Allocator
from numalloc_tools.guest import packages
from numalloc_tools.guest.architecture import Architecture
from numalloc_tools.preload import built_here, found
from numalloc_tools.problem import Problem


def named(name: str, our_library: Path | None, architecture: Architecture) -> Allocator:
    if name == BASELINE:
        return Allocator(name)
    if name == OURS:
        return Allocator(name, (our_library or (built_here(architecture.name) if architecture.foreign else found()),))
    if name not in DEBIAN:
        raise Problem(f"--allocators: '{name}' is unknown; accepted: {', '.join(PACKAGED)}")
    package = DEBIAN[name]
    folder = packages.unpacked_by_any_name(package.names, architecture) / "usr/lib" / architecture.triplet
    library = next((path for one in package.libraries if (path := folder / one).exists()), folder / package.libraries[0])
    return Allocator(name, (library,), also={"LD_LIBRARY_PATH": str(folder)})
