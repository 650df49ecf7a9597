"""The kernel's files, under / or in a folder with a copy of another machine's."""

import os
from pathlib import Path

from numalloc_tools.machine.lists import numbers
from numalloc_tools.problem import Problem


class Files:
    """A missing or unreadable file reads as empty: containers hide many files."""

    def __init__(self, root: Path = Path("/")):
        self.root = root

    @property
    def real(self) -> bool:
        """Whether this is the current machine: then calls can be tried that no file describes."""
        return self.root == Path("/")

    def path(self, name: str) -> Path:
        return self.root / name.lstrip("/")

    def text(self, name: str) -> str | None:
        try:
            return self.path(name).read_text(errors="replace").strip()
        except OSError:
            return None

    def number(self, name: str) -> int | None:
        return as_number(self.text(name))

    def numbers(self, name: str) -> list[int] | None:
        """A list such as 0-3,8; empty if the file has no such list."""
        try:
            return numbers(self.text(name) or "")
        except ValueError:
            return None

    def names(self, folder: str, prefix: str = "") -> list[str]:
        """The entries of a folder, sorted by the numbers at their ends."""
        try:
            found = [name for name in os.listdir(self.path(folder)) if name.startswith(prefix)]
        except OSError:
            return []
        return sorted(found, key=lambda name: (name.rstrip("0123456789"), ending_number(name) or 0, name))

    def chosen(self, name: str) -> str | None:
        """The word in brackets of a file such as 'always [madvise] never'."""
        for word in (self.text(name) or "").split():
            if word.startswith("["):
                return word.strip("[]")
        return None

    def fields(self, name: str) -> dict[str, str]:
        """Lines of the kind 'Name:   value'."""
        pairs = (line.partition(":") for line in (self.text(name) or "").splitlines())
        return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def rooted(folder: Path | None) -> Files:
    """The folder of --root, which must contain sys, proc or both."""
    if folder is None:
        return Files()
    if not any((folder / name).is_dir() for name in ("sys", "proc")):
        raise Problem(f"--root: {folder} contains neither sys nor proc; accepted: a folder with a copy of a machine's /sys and /proc")
    return Files(folder.resolve())


def as_number(text: str | None) -> int | None:
    try:
        return int((text or "").split()[0])
    except (ValueError, IndexError):
        return None


def kilobytes(text: str | None) -> int | None:
    """'123 kB' in bytes."""
    number = as_number(text)
    return None if number is None else number * 1024


def ending_number(name: str) -> int | None:
    digits = name[len(name.rstrip("0123456789")) :]
    return int(digits) if digits else None
