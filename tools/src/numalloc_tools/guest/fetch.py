"""Fetches the files for a virtual machine of this host's architecture, so that later runs need no network:

    python -m numalloc_tools.guest.fetch

The cache is $XDG_CACHE_HOME/numalloc, else ~/.cache/numalloc.
"""

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

from numalloc_tools.guest import accelerator, kernel
from numalloc_tools.guest.architecture import named
from numalloc_tools.guest.image import busybox
from numalloc_tools.problem import Problem

TRIES = 3
PAUSE = 30.0  # seconds: for a busy mirror or a short network failure
_COMMANDS = {"cpio": "cpio", "numactl": "numactl"}  # with their Debian packages


def tried(fetch: Callable[[], Path], pause: float = PAUSE) -> Path:
    """The result of `fetch`, which may fail in all tries but the last."""
    for left in range(TRIES - 1, -1, -1):
        try:
            return fetch()
        except Problem as problem:
            if not left:
                raise
            print(f"numalloc: {problem}; trying again in {pause:.0f} s", file=sys.stderr, flush=True)
            time.sleep(pause)
    raise AssertionError


def main() -> int:
    architecture = named("")
    try:
        programs = [accelerator.qemu(architecture), busybox(architecture)]
        for name, package in _COMMANDS.items():
            command = shutil.which(name)
            if command is None:
                raise Problem(f"{name} is missing; install the Debian package {package}", 125)
            programs.append(command)
        found = tried(kernel.image)
        # Tests whether a stock kernel boots under KVM, once per boot of this host.
        chosen = accelerator.choose("auto", "auto", 2, found, architecture)
    except Problem as problem:
        print(f"numalloc: {problem}", file=sys.stderr)
        return problem.exit_status
    for path in [*programs, found]:
        print(path)
    print("accelerator:", chosen.arguments[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
