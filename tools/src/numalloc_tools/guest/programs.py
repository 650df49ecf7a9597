"""The proof programs, in C so that only the tested allocator allocates; compiled once per version."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from numalloc_tools import cache
from numalloc_tools.guest.architecture import Architecture
from numalloc_tools.problem import Problem

SOURCES = Path(__file__).with_name("programs")
# Without -fno-builtin the compiler may remove a malloc whose memory is not used.
_FLAGS = ["-std=gnu11", "-O2", "-fno-builtin", "-pthread", "-Wall", "-Wextra"]


def built(name: str, folder: Path = SOURCES, architecture: Architecture | None = None, flags: tuple[str, ...] = ()) -> Path:
    """The path of the program compiled from `folder`/`name`.c with these extra `flags`; it may include the headers of
    `folder` and of the proof programs."""
    if architecture is not None and architecture.foreign:
        compiler, package = shutil.which(f"{architecture.triplet}-gcc"), f"gcc-{architecture.triplet.replace('_', '-')}"
    else:
        compiler, package = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc"), "gcc"
    if not compiler:
        raise Problem(f"the proof programs need a C compiler; install the Debian package {package}", 125)
    source = folder / f"{name}.c"
    words = [compiler, *_FLAGS, *flags, f"-I{SOURCES}", str(source)]
    # All compiled text, without its paths.
    text = _said([*words, "-E", "-P"], source)
    key = hashlib.sha256((text + repr((compiler, _FLAGS, *flags))).encode()).hexdigest()[:16]
    program = cache.directory("programs", key) / name
    if not program.exists():
        with tempfile.TemporaryDirectory(dir=program.parent) as work:
            _said([*words, "-o", f"{work}/{name}"], source)
            os.rename(f"{work}/{name}", program)
    return program


def _said(command: list[str], source: Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Problem(f"{source} cannot be compiled: {done.stderr.strip()}", 125)
    return done.stdout
