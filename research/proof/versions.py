"""The versions of what was run: without them a report cannot be reproduced."""

import gzip
import hashlib
import re
import subprocess
from pathlib import Path

from numalloc_tools.allocators import DEBIAN, Allocator
from numalloc_tools.guest import accelerator, packages
from numalloc_tools.guest.architecture import Architecture


def of_allocator(allocator: Allocator, architecture: Architecture) -> str:
    if allocator.name in DEBIAN:
        return _of_package(DEBIAN[allocator.name].names, architecture)
    if not allocator.library:
        if architecture.foreign:
            libc = Path(architecture.cross_folder, "libc.so.6").read_bytes()
            told = re.search(rb"GNU C Library [ -~]*", libc)
            return told[0].decode() if told else "unknown"
        return subprocess.run(["ldd", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    return "sha256 " + hashlib.sha256(allocator.library.read_bytes()).hexdigest()[:16]


def of_qemu(architecture: Architecture) -> str:
    return subprocess.run([accelerator.qemu(architecture), "--version"], capture_output=True, text=True).stdout.splitlines()[0]


def of_kernel(image: Path) -> str:
    return image.name.removeprefix("vmlinuz-")


def _of_package(names: tuple[str, ...], architecture: Architecture) -> str:
    """From the first line of its list of changes: NAME (VERSION) ..."""
    for changes in packages.unpacked_by_any_name(names, architecture).glob("usr/share/doc/*/changelog.Debian*"):
        with gzip.open(changes) as text:
            return text.readline().decode(errors="replace").split(";")[0].strip()
    return names[0]
