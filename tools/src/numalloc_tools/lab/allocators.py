"""The allocators that are compared: numalloc as built here, the C library's, and Debian's packages."""

from dataclasses import dataclass, field
from pathlib import Path

from numalloc_tools.lab import packages
from numalloc_tools.lab.architecture import Architecture
from numalloc_tools.preload import built_here, found
from numalloc_tools.problem import Problem

OURS = "numalloc"
DEBIAN = {  # package and library of each
    "jemalloc": ("libjemalloc2", "libjemalloc.so.2"),
    "tcmalloc": ("libtcmalloc-minimal4", "libtcmalloc_minimal.so.4"),
    "mimalloc": ("libmimalloc2.0", "libmimalloc.so.2"),
    "tbbmalloc": ("libtbbmalloc2", "libtbbmalloc_proxy.so.2"),
}
NAMES = (OURS, "glibc", *DEBIAN)


@dataclass(frozen=True)
class Allocator:
    name: str
    library: str = ""  # nothing to preload: the C library's own
    library_path: str = ""  # where the libraries are that this one needs
    package: str = ""  # Debian's, where it comes from one
    environment: dict[str, str] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        variables = dict(self.environment)
        if self.library:
            variables["LD_PRELOAD"] = self.library
        if self.library_path:
            variables["LD_LIBRARY_PATH"] = self.library_path
        return variables


def named(name: str, our_library: Path | None, architecture: Architecture) -> Allocator:
    if name == "glibc":
        return Allocator(name)
    if name == OURS:
        return Allocator(name, str(our_library or (built_here(architecture.name) if architecture.foreign else found())))
    if name not in DEBIAN:
        raise Problem(f"--allocators: '{name}' is unknown; accepted: {', '.join(NAMES)}")
    package, library = DEBIAN[name]
    folder = packages.unpacked(package, architecture) / "usr/lib" / architecture.triplet
    return Allocator(name, str(folder / library), str(folder), package)
