"""The guest's file system: the program, all its libraries and the named files, packed directly from
the host's paths into a cpio archive. Nothing is copied on the host."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

from numalloc_tools.guest import foreign
from numalloc_tools.guest.architecture import Architecture, named
from numalloc_tools.problem import Problem

_GUESTS_OWN = ("/proc", "/sys", "/dev", "/lab")  # file systems of the guest, and the lab's own files
MOST_LINKS = 40  # as in the kernel
_ELF = b"\x7fELF"


class Image:
    """Collects host paths, then writes an archive with the same paths."""

    def __init__(self, library_path: str = "", architecture: Architecture | None = None):
        self.architecture = architecture or named("")
        self._paths: dict[str, None] = {}  # an ordered set: a folder precedes its contents
        self._programs: set[str] = set()
        self._library_path = library_path
        self._own: dict[str, tuple[bytes, int]] = {}
        self._links: dict[str, str] = {}
        if self.architecture.foreign:
            self._link("/bin/sh", "/lab/busybox")
            self._link(self.architecture.loader, f"{self.architecture.cross_folder}/{os.path.basename(self.architecture.loader)}")

    def add_program(self, path: str, complete: bool = True) -> None:
        """Adds a program or library with its libraries, or a script with its interpreter. Unless it must be
        `complete`, a library may be missing: a plug-in finds some through the program that loads it."""
        if path in self._programs:
            return
        self._programs.add(path)
        try:
            with open(path, "rb") as file:
                start = file.read(256)
        except OSError as error:
            raise Problem(f"{path} cannot be added to the guest ({error.strerror})") from None
        self._add_path(path)
        if start.startswith(b"#!"):
            words = start[2:].split(b"\n")[0].decode(errors="replace").split()
            if words and os.path.exists(words[0]) and not self.architecture.foreign:
                self.add_program(words[0])
                named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
                if os.path.basename(words[0]) == "env" and named and (found := shutil.which(named[0])):
                    self.add_program(found)
        elif start.startswith(_ELF) and self.architecture.foreign:
            foreign.check(path, start, self.architecture)
            for library in foreign.libraries(path, self._library_path, complete, self.architecture):
                self._link(f"/usr/lib/{self.architecture.triplet}/{os.path.basename(library)}", library)
                self.add_program(library, complete)
        elif start.startswith(_ELF):
            for library in self._libraries(path, complete):
                self._add_path(library)

    def add_file(self, path: str) -> None:
        """Adds a file, or a folder with its contents, and the libraries of programs among them. Symbolic
        links stay links, and their targets are added if they exist; sockets and the like are skipped."""
        if is_guests_own(path):
            raise Problem(f"--file: {path} is in a folder for which the guest has its own; these are {', '.join(_GUESTS_OWN)}")
        if not os.path.isdir(path):
            return self._add_with_libraries(path)
        self._add_path(path)
        for folder, folders, files in os.walk(path):
            for name in folders:
                self._add_path(os.path.join(folder, name))
            for name in files:
                self._add_with_libraries(os.path.join(folder, name))

    def add_own(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Adds a file that exists only in the guest. `path` is relative to the root."""
        self._own[path] = (content, mode)

    def add_command(self, name: str) -> str:
        """Adds a program by the name by which a shell finds it, and returns its path in the guest."""
        if self.architecture.foreign and "/" not in name:
            path = foreign.tool(name, self.architecture)
            if path is None:  # busybox may have it; this machine's programs would not run there
                return name
            self._link(f"/usr/bin/{name}", path)
        else:
            path = find_program(name)
        self.add_program(path)
        return path

    def add_folder(self, path: str) -> None:
        """Adds the folder with its parents, without its contents."""
        self._add_path(path)

    def write(self, archive: Path, work: Path) -> None:
        own = work / "own"
        for path, (content, mode) in self._own.items():
            target = own / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(mode)
        for path, leads_to in self._links.items():
            link = own / path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(leads_to)
        names = sorted(str(path.relative_to(own)) for path in own.rglob("*"))
        with archive.open("wb") as output:
            # The kernel unpacks archives one after the other, so the host's paths and the lab's need not
            # be brought together in one folder first.
            self._cpio("/", [path.lstrip("/") for path in self._paths], output)
            self._cpio(str(own), names, output)

    @staticmethod
    def _cpio(root: str, names: list[str], output) -> None:
        if not shutil.which("cpio"):
            raise Problem("cpio is missing; install the Debian package cpio", 125)
        command = ["cpio", "--create", "--format=newc", "--owner=+0:+0", "--null", "--quiet"]
        listing = b"".join(os.fsencode(name) + b"\0" for name in names)
        done = subprocess.run(command, cwd=root, input=listing, stdout=output, stderr=subprocess.PIPE)
        if done.returncode:
            raise Problem(f"cpio could not pack the guest's files: {done.stderr.decode(errors='replace').strip()}", 125)

    def _link(self, path: str, target: str) -> None:
        """Adds a link that exists only in the guest, in a folder of the host's; existing links stay."""
        folder = os.path.dirname(path)
        if os.path.isdir(folder):
            self._add_path(folder)
            path = os.path.join(os.path.realpath(folder), os.path.basename(path))
        self._links[path.lstrip("/")] = target
        self._add_path(target)

    def _add_with_libraries(self, path: str) -> None:
        if os.path.islink(path):
            self._add_path(path)
        try:
            mode = os.stat(path).st_mode
        except OSError:  # a broken link, or a file that was removed since
            return
        if not stat.S_ISREG(mode):
            return
        if mode & 0o111 or ".so" in os.path.basename(path):
            self.add_program(path, complete=False)
        else:
            self._add_path(path)

    def _add_path(self, path: str) -> None:
        """The path itself, its folders, and the targets of symbolic links among them."""
        pending = [part for part in os.path.abspath(path).split("/") if part]
        here = "/"
        links = 0
        while pending:
            part = pending.pop(0)
            if part == "..":
                here = os.path.dirname(here)
                continue
            here = os.path.join(here, part)
            if not os.path.lexists(here):  # the target of a broken link
                return
            self._paths[here] = None
            if os.path.islink(here):
                links += 1
                if links > MOST_LINKS:  # the links form a cycle
                    return
                target = os.readlink(here)
                pending = [step for step in target.split("/") if step not in ("", ".")] + pending
                here = "/" if target.startswith("/") else os.path.dirname(here)

    def _libraries(self, path: str, complete: bool) -> list[str]:
        environment = dict(os.environ, LC_ALL="C")
        if self._library_path:
            environment["LD_LIBRARY_PATH"] = self._library_path
        environment.pop("LD_PRELOAD", None)
        listing = subprocess.run(["ldd", path], env=environment, capture_output=True, text=True)
        libraries = []
        for line in listing.stdout.splitlines():
            if complete and (match := re.match(r"\s*(\S.*) => not found", line)):
                raise Problem(f"{path} needs {match[1]}, which this machine does not have; name its folder with --env LD_LIBRARY_PATH=...")
            if match := re.match(r"\s*(?:\S+ => )?(\S*/.*) \(0x[0-9a-f]+\)$", line):
                libraries.append(match[1])
        return libraries


def is_guests_own(path: str) -> bool:
    path = os.path.abspath(path)
    if path == "/dev/shm" or path.startswith("/dev/shm/"):
        return False
    return path == "/" or any(path == own or path.startswith(own + "/") for own in _GUESTS_OWN)


def find_program(name: str) -> str:
    """The path of a command, as a shell finds it."""
    found = shutil.which(name)
    if found:
        return os.path.abspath(found)
    if os.path.exists(name) and "/" in name:
        raise Problem(f"{name} cannot be executed", 126)
    raise Problem(f"{name}: no such command", 127)


def busybox(architecture: Architecture) -> str:
    if architecture.foreign:
        return foreign.busybox(architecture)
    path = shutil.which("busybox")
    if not path:
        raise Problem("busybox is missing; install the Debian package busybox-static", 125)
    listing = subprocess.run(["ldd", path], capture_output=True, text=True)
    if listing.returncode == 0:
        raise Problem(f"{path} needs shared libraries; install the Debian package busybox-static", 125)
    return path
