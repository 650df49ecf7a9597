"""A QEMU with the plugin interface that numascope needs: the machine's own, or Debian's backport, fetched once and used
from the folder where it was unpacked."""

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache as cache_result
from pathlib import Path

from numalloc_tools import cache
from numalloc_tools.guest import packages
from numalloc_tools.guest.architecture import X86_64
from numalloc_tools.problem import Problem

LEAST = (9, 2)  # the first with version 4 of the interface
_PACKAGE = X86_64.qemu_package
_PARTS = (_PACKAGE, "qemu-system-common", "qemu-system-data", "seabios")
_FIRMWARE = ("usr/share/qemu", "usr/share/seabios")


@dataclass(frozen=True)
class Emulator:
    program: str
    arguments: tuple[str, ...] = ()  # the folder of its firmware
    environment: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def version(self) -> str:
        return _told(self.program, self.environment)


def at_hand() -> Emulator | None:
    """A QEMU that is installed or cached; fetches nothing."""
    own = shutil.which(X86_64.qemu)
    if own and _is_new_enough(_told(own, {})):
        return Emulator(own)
    kept = cache.directory("qemu") / "backport"
    return _unpacked(kept) if kept.is_dir() else None


@cache_result
def found() -> Emulator:
    emulator = at_hand() or _unpacked(_backport())
    told = _told(emulator.program, emulator.environment)
    if not _is_new_enough(told):
        raise Problem(f"{emulator.program} does not start or is too old ({told}); remove {cache.directory('qemu')} to fetch it again", 125)
    return emulator


def _told(program: str, environment: dict[str, str]) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, env={**os.environ, **environment})
    return ((done.stdout or done.stderr).splitlines() or ["no answer"])[0]


def _is_new_enough(told: str) -> bool:
    numbers = re.search(r"version (\d+)\.(\d+)", told)
    return numbers is not None and tuple(map(int, numbers.groups())) >= LEAST


def _unpacked(folder: Path) -> Emulator:
    firmware = [word for part in _FIRMWARE for word in ("-L", str(folder / part))]
    libraries = folder / "usr/lib" / X86_64.triplet
    return Emulator(str(folder / "usr/bin" / X86_64.qemu), tuple(firmware), {"LD_LIBRARY_PATH": str(libraries)})


def _backport() -> Path:
    def fetch(content: Path) -> None:
        release = platform.freedesktop_os_release()
        if release.get("ID") != "debian" or platform.machine() != X86_64.name:
            raise Problem(f"numascope needs QEMU {LEAST[0]}.{LEAST[1]} or newer; install {_PACKAGE} of a release that has it", 125)
        packages.unpack_backports(_PARTS, content)

    return cache.kept(cache.directory("qemu") / "backport", fetch)
