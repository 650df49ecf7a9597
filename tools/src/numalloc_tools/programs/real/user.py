"""Runs servers that refuse to run as root under another user."""

import os
import pwd
import shutil
from dataclasses import replace
from pathlib import Path

from numalloc_tools.allocators import Allocator


def as_user(words: list[str], user: str) -> list[str]:
    if os.getuid() != 0 or not user:
        return words
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *words]


def for_user(allocator: Allocator, folder: Path, user: str) -> Allocator:
    """Another user cannot read root's home: copies the libraries into the folder, and gives it to that user."""
    if os.getuid() != 0 or not user:
        return allocator
    os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    libraries = tuple(Path(shutil.copy(library, folder)) for library in allocator.libraries)
    return replace(allocator, libraries=libraries)
