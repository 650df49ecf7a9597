"""The program: finds it, checks whether a library can be preloaded into it, and becomes it."""

import errno
import os
import shutil
import stat
import struct
from dataclasses import dataclass
from pathlib import Path

from numalloc_tools.problem import Problem

_ELF = b"\x7fELF"
_INTERP = 3  # program header: the program's loader
_SCRIPTS_IN_SCRIPTS = 4  # as in the kernel


@dataclass(frozen=True)
class Obstacle:
    reason: str
    drop: bool  # the loader would complain or fail; otherwise it only skips the library here, and children may load it


def find(name: str) -> str:
    """The path that execvp would find."""
    found = shutil.which(name)
    if found:
        return found
    candidates = [name] if "/" in name else [os.path.join(folder, name) for folder in os.get_exec_path()]
    for path in candidates:
        if os.path.isdir(path):
            continue
        if os.path.exists(path):
            raise Problem(f"{path}: not executable", 126)
    if "/" in name and os.path.isdir(name):
        raise Problem(f"{name}: a folder, not a program", 126)
    raise Problem(f"{name}: no such program", 127)


def become(path: str, words: list[str], environment: dict[str, str]) -> None:
    """Does not return. As execvp does, runs a file that is no program and has no #! by a shell."""
    try:
        try:
            os.execve(path, words, environment)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            os.execve("/bin/sh", ["/bin/sh", path, *words[1:]], environment)
    except OSError as error:
        raise not_started(path, error) from None


def not_started(path: str, error: OSError) -> Problem:
    """The messages of env(1) with 126 and 127."""
    if error.errno == errno.ENOENT:
        return Problem(f"{path}: its interpreter or loader is missing", 127)
    return Problem(f"{path}: {error.strerror}", 126)


def obstacle(path: str, library: Path) -> Obstacle | None:
    """The reason why the dynamic loader would not load `library` into the program."""
    binary = _binary_of(path)
    if binary is None:
        return None
    interpreter, kind = _read_elf(binary)
    if kind is None:
        return None
    name = os.path.basename(binary)
    if kind != _read_elf(str(library))[1]:
        return Obstacle(f"{name} is for another kind of machine than {library.name}", True)
    if interpreter is None:
        return Obstacle(f"{name} is linked statically", False)
    if "ld-musl" in interpreter:
        return Obstacle(f"{name} is linked with musl, and {library.name} with glibc", True)
    if privileges := _privileges(binary):
        return Obstacle(f"{name} {privileges}, so the loader preloads nothing", False)
    return None


def _binary_of(path: str) -> str | None:
    """The program itself, or the interpreter of a script."""
    for _ in range(_SCRIPTS_IN_SCRIPTS):
        try:
            with open(path, "rb") as file:
                start = file.read(256)
        except OSError:  # executable but not readable
            return None
        if start.startswith(_ELF):
            return path
        words = start[2:].split(b"\n")[0].decode(errors="replace").split() if start.startswith(b"#!") else ["/bin/sh"]
        named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        if words and os.path.basename(words[0]) == "env" and named:
            words[0] = shutil.which(named[0]) or words[0]
        if not words:
            return None
        path = words[0]
    return None


def _read_elf(path: str) -> tuple[str | None, tuple | None]:
    """Its loader, and the kind of machine: class, byte order, processor."""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            wide, order = head[4] == 2, "<" if head[5] == 1 else ">"
            machine = struct.unpack_from(order + "H", head, 18)[0]
            (table,) = struct.unpack_from(order + ("Q" if wide else "I"), head, 32 if wide else 28)
            size, count = struct.unpack_from(order + "HH", head, 54 if wide else 42)
            file.seek(table)
            headers = file.read(size * count)
            interpreter = None
            for at in range(0, size * count, size):
                if struct.unpack_from(order + "I", headers, at)[0] == _INTERP:
                    where = struct.unpack_from(order + ("Q" if wide else "I"), headers, at + (8 if wide else 4))[0]
                    length = struct.unpack_from(order + ("Q" if wide else "I"), headers, at + (32 if wide else 16))[0]
                    file.seek(where)
                    interpreter = file.read(length).rstrip(b"\0").decode(errors="replace")
            return interpreter, (head[4], head[5], machine)
    except (OSError, struct.error, IndexError, ValueError, OverflowError, MemoryError):
        return None, None


def _privileges(path: str) -> str:
    """The reason why the loader ignores the environment."""
    found = os.stat(path)
    if found.st_mode & stat.S_ISUID and found.st_uid != os.geteuid():
        return "changes its user (setuid)"
    if found.st_mode & stat.S_ISGID and found.st_gid != os.getegid():
        return "changes its group (setgid)"
    try:
        capabilities = os.getxattr(path, "security.capability")
    except OSError:
        return ""
    return "has file capabilities" if capabilities and os.geteuid() else ""
