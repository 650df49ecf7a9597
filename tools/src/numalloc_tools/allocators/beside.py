"""numalloc and the allocators to compare it with, which may include the program's own."""

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from numalloc_tools.allocators.allocator import BASELINE, BOUND, OURS, Allocator
from numalloc_tools.allocators.compared import named_paths
from numalloc_tools.preload import existing, our_library
from numalloc_tools.problem import Problem

_BUNDLED = re.compile(r"lib(jemalloc|tcmalloc\w*|mimalloc|tbbmalloc\w*|snmalloc\w*)[-\w.]*\.so")


def chosen(program: str, library: Path | None, others: list[str]) -> list[Allocator]:
    """The baseline first, which is glibc's, or the program's own if no other can serve it; then the program's own, if it has
    one; then numalloc, and those that the user names."""
    libraries = libraries_of([program, "--version"])
    bundled = next((match[1] for path in libraries if (match := _BUNDLED.search(path))), None)
    allocators = [Allocator(BASELINE)]
    if bundled:
        # The program is linked with another malloc. A preloaded C library precedes it.
        libc = next((path for path in libraries if Path(path).name.startswith("libc.so")), None)
        if libc is None:
            raise Problem(f"{program} does not load a C library, so nothing can be preloaded into it")
        own = Allocator(f"own {bundled}")
        allocators = [own] if calls_jemalloc(program) else [Allocator(BASELINE, (Path(libc),)), own]
    return with_named([*allocators, Allocator(OURS, (our_library(library),))], others)


def with_named(allocators: list[Allocator], others: list[str]) -> list[Allocator]:
    """These, and those that the user names."""
    allocators = [*allocators]
    for name, path in named_paths(others):
        if name in (allocator.name for allocator in allocators):
            raise Problem(f"--allocator: '{name}' is taken; accepted: another name")
        if len(name.split()) != 1:
            raise Problem(f"--allocator: '{name}' contains a blank; accepted: a name without one")
        allocators.append(Allocator(name, (existing(path, "--allocator"),)))
    return allocators


def on_the_systems_malloc(allocator: Allocator, program: str) -> Allocator:
    """A program linked with another malloc uses the C library's only if that is preloaded."""
    if allocator.name.removesuffix(BOUND) != BASELINE:
        return allocator
    libc = next((Path(path) for path in libraries_of([program]) if Path(path).name.startswith("libc.so")), None)
    return replace(allocator, libraries=(*allocator.libraries, libc.resolve())) if libc else allocator


def calls_jemalloc(program: str) -> bool:
    """Whether it calls jemalloc's functions with flags. Other mallocs, but for numalloc, do not know their blocks."""
    path = shutil.which(program)
    if path is None:
        return False
    with open(path, "rb") as stream:
        try:
            symbols = ELFFile(stream).get_section_by_name(".dynsym")
        except ELFError:  # a script
            return False
        return symbols is not None and any(symbol.name in ("mallocx", "rallocx") for symbol in symbols.iter_symbols())


def libraries_of(command: list[str]) -> list[str]:
    """The shared libraries that the dynamic loader would load, from ldd."""
    environment = {"PATH": os.environ.get("PATH", ""), "LD_TRACE_LOADED_OBJECTS": "1"}
    listing = subprocess.run(command, env=environment, capture_output=True, text=True).stdout
    return re.findall(r"=> (/\S+)", listing)
