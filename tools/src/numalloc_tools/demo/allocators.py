"""What is preloaded for each column of the comparison."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from numalloc_tools.lab.allocators import OURS
from numalloc_tools.preload import existing, our_library
from numalloc_tools.problem import Problem

BASELINE = "glibc"
_BUNDLED = re.compile(r"lib(jemalloc|tcmalloc\w*|mimalloc|tbbmalloc\w*|snmalloc\w*)[-\w.]*\.so")


@dataclass(frozen=True)
class Allocator:
    name: str
    library: Path | None = None  # nothing to preload: what the program would use anyway

    def environment(self) -> dict[str, str]:
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        if self.library:
            environment["LD_PRELOAD"] = str(self.library)
        return environment


def chosen(program: str, library: Path | None, others: list[str]) -> list[Allocator]:
    """glibc's first, as what the rest is compared with; then the program's own, if it brings one;
    then numalloc, and those that the user names."""
    libraries = _libraries_of(program)
    bundled = next((match[1] for path in libraries if (match := _BUNDLED.search(path))), None)
    allocators = [Allocator(BASELINE)]
    if bundled:
        # The program is linked with another malloc. The C library, preloaded, comes before that one.
        libc = next((path for path in libraries if Path(path).name.startswith("libc.so")), None)
        if libc is None:
            raise Problem(f"{program} does not load a C library, so nothing can be preloaded into it")
        allocators = [Allocator(BASELINE, Path(libc)), Allocator(f"own {bundled}")]
    allocators.append(Allocator(OURS, our_library(library)))
    for text in others:
        name, equals, path = text.partition("=")
        if not name or not path:
            raise Problem(f"--allocator: '{text}' is not understood; accepted: NAME=PATH of a library to preload")
        if name in (allocator.name for allocator in allocators):
            raise Problem(f"--allocator: '{name}' is there already; accepted: a name of its own")
        allocators.append(Allocator(name, existing(Path(path), "--allocator")))
    return allocators


def _libraries_of(program: str) -> list[str]:
    """The shared libraries that the dynamic loader would load, as ldd lists them."""
    environment = {"PATH": os.environ.get("PATH", ""), "LD_TRACE_LOADED_OBJECTS": "1"}
    listing = subprocess.run([program, "--version"], env=environment, capture_output=True, text=True).stdout
    return re.findall(r"=> (/\S+)", listing)
