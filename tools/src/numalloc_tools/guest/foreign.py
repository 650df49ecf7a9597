"""Programs of another architecture, which this machine's ldd cannot handle: reads their needs from the files."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from numalloc_tools.guest import packages
from numalloc_tools.guest.architecture import Architecture
from numalloc_tools.problem import Problem

# Commands for the guest, not installed on this machine: package and path of each.
_TOOLS = {"numactl": ("numactl", "usr/bin/numactl"), "prlimit": ("util-linux", "usr/bin/prlimit")}
_TOOLS_LIBRARIES = {"libnuma.so.1": "libnuma1", "libsmartcols.so.1": "libsmartcols1"}


def machine_of(start: bytes) -> int:
    """The processor of an ELF file, from its first bytes."""
    return int.from_bytes(start[18:20], "little")


def check(path: str, start: bytes, architecture: Architecture) -> None:
    if machine_of(start) != architecture.elf_machine:
        raise Problem(
            f"{path} is not for {architecture.name}, the machine's architecture; accepted: a program for the architecture of --arch", 126
        )


def libraries(path: str, library_path: str, complete: bool, architecture: Architecture) -> list[str]:
    """The files of the libraries that it names directly."""
    listing = subprocess.run([_readelf(), "-d", path], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C"))
    folders = [folder for folder in library_path.split(":") if folder]
    for match in re.finditer(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", listing.stdout):
        folders += [folder.replace("$ORIGIN", os.path.dirname(path)) for folder in match[1].split(":") if folder]
    folders.append(architecture.cross_folder)
    found = []
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", listing.stdout):
        paths = [name] if "/" in name else [f"{folder}/{name}" for folder in folders]
        file = next((one for one in paths if os.path.exists(one)), None)
        if file is None and name in _TOOLS_LIBRARIES:
            file = _fetched(_TOOLS_LIBRARIES[name], f"usr/lib/{architecture.triplet}/{name}", architecture)
        if file:
            found.append(file)
        elif complete:
            raise Problem(
                f"{path} needs {name}, which is not in {architecture.cross_folder}; install the Debian package "
                f"libc6-{architecture.debian}-cross or name its folder with --env LD_LIBRARY_PATH=..."
            )
    return found


def tool(name: str, architecture: Architecture) -> str | None:
    """A Debian program that the lab adds to the guest; None for a command that busybox may have."""
    if name not in _TOOLS:
        return None
    return _fetched(*_TOOLS[name], architecture)


def busybox(architecture: Architecture) -> str:
    folder = packages.unpacked("busybox-static", architecture)
    for place in ("bin/busybox", "usr/bin/busybox"):
        if (folder / place).is_file():
            return str(folder / place)
    raise Problem(f"{folder} contains no busybox", 125)


def _fetched(package: str, path: str, architecture: Architecture) -> str:
    file = packages.unpacked(package, architecture) / path
    if not Path(file).exists():
        raise Problem(f"{package} of {architecture.debian} contains no {path}", 125)
    return str(file)


@cache
def _readelf() -> str:
    path = shutil.which("readelf")
    if not path:
        raise Problem("readelf is missing; programs of another architecture need the Debian package binutils", 125)
    return path
