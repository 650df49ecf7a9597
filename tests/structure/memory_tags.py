#!/usr/bin/env python3
"""libnumalloc-hardened.so where memory has tags: cross-compiled for aarch64, and run by qemu-user on a processor with MTE.
Each bug of outside/tags.c ends its program with its line; a right program runs, with tags and without. Status 77 where something
is not installed.

QEMU 7.2 has tags in its user mode only: its machines give all of a page one tag."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from check import HERE, SOURCE, finish, run

CC, CXX, QEMU = "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "qemu-aarch64"
SEGV, ABRT = -11, -6
STALE = r"it has another tag than the memory there: it is stale, or no pointer that was given out"

# How the program ends, and what its line is.
BUGS = {
    "overflow": (SEGV, r"overflow: \w+ at 0x\w+, byte 1 behind the \d+-byte object at 0x\w+, in front of the next one"),
    "overread": (SEGV, r"overflow: \w+ at 0x\w+, byte 16 behind the \d+-byte object at .*"),
    "overflow_by_copy": (SEGV, r"overflow: \w+ at 0x\w+, byte 1 behind the 1008-byte object at .*"),
    "underflow": (SEGV, r"(overflow|wrong pointer): .*"),
    "overflow_of_32K": (SEGV, r"overflow: \w+ at 0x\w+, byte 1 behind the 32752-byte object at .*"),
    "read_after_free": (SEGV, r"use after free: \w+ at 0x\w+, byte 8 of the \d+-byte object at 0x\w+"),
    "write_after_free": (SEGV, r"use after free: \w+ at 0x\w+, byte 999 of the 1008-byte object at 0x\w+"),
    "read_after_realloc": (SEGV, r"use after free: \w+ at 0x\w+, byte 8 of the 1008-byte object at 0x\w+"),
    "read_of_another": (SEGV, r"wrong pointer: \w+ at 0x\w+, byte 8 of the \d+-byte object at 0x\w+, which is another one's"),
    "second_free": (ABRT, r"invalid pointer in free\(0x\w+\): it was freed already"),
    "stale_free": (ABRT, rf"invalid pointer in free\(0x\w+\): {STALE}"),
    "stale_realloc": (ABRT, rf"invalid pointer in realloc\(0x\w+\): {STALE}"),
    "stale_usable_size": (ABRT, rf"invalid pointer in malloc_usable_size\(0x\w+\): {STALE}"),
    "free_without_tag": (ABRT, rf"invalid pointer in free\(0x\w+\): {STALE}"),
    "free_inside": (ABRT, r"invalid pointer in free\(0x\w+\): it points inside an object, not at its start"),
}
RIGHT = {
    "with tags": ("max", "1", "tags\n"),
    "with tags switched off": ("max", "0", "no tags\n"),
    "on a processor without tags": ("cortex-a57", "1", "no tags\n"),
}


def main() -> None:
    missing = [tool for tool in (CC, CXX, QEMU) if shutil.which(tool) is None]
    if missing:
        print(f"not installed: {' '.join(missing)}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        # Where the preset was built, what has changed since is made and taken.
        build = SOURCE / "build" / "aarch64"
        if not (build / "build.ninja").exists():
            build = Path(work) / "build"
            options = ("-DNUMALLOC_BUILD_TESTS=OFF", "-DNUMALLOC_BUILD_BENCHMARKS=OFF", "-DNUMALLOC_WERROR=ON")
            run("cmake", "-S", SOURCE, "-B", build, "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={SOURCE / 'cmake/aarch64.cmake'}", *options)
        run("cmake", "--build", build, "--target", "numalloc_hardened")
        program = Path(work) / "tags"
        run(CC, "-O2", "-w", "-pthread", HERE / "outside" / "tags.c", "-o", program)

        def play(case: str, processor: str, tags: str) -> subprocess.CompletedProcess[str]:
            variables = {
                "LD_PRELOAD": str(build / "libnumalloc-hardened.so"),
                "NUMALLOC_MEMORY_TAGS": tags,
                "NUMALLOC_RESERVE": "1G",  # see compilers.py
                # Another memset: in `dc zva` QEMU, 7.2 and 10.0, takes a tag for a part of the address.
                "GLIBC_TUNABLES": "glibc.cpu.name=kunpeng920",
            }
            given = [word for name, value in variables.items() for word in ("-E", f"{name}={value}")]
            command = [QEMU, "-cpu", processor, "-L", "/usr/aarch64-linux-gnu", *given, str(program), case]
            return subprocess.run(command, capture_output=True, text=True, timeout=120, env={"PATH": os.environ["PATH"]}, cwd=work)

        faults = []
        for name, (processor, tags, said) in RIGHT.items():
            done = play("right", processor, tags)
            if (done.returncode, done.stdout, done.stderr) != (0, said, ""):
                faults.append(f"{name}: exit status {done.returncode}, said {done.stdout!r} {done.stderr!r}")
        for case, (status, line) in BUGS.items():
            done = play(case, "max", "1")
            # QEMU adds a line of its own where a signal ends the program.
            said = "".join(one + "\n" for one in done.stderr.splitlines() if not one.startswith("qemu: "))
            if done.returncode != status or not re.fullmatch(rf"numalloc: {line}\n", said):
                faults.append(f"{case}: exit status {done.returncode}, said {said!r}")
    finish(faults, f"{len(BUGS)} bugs are caught by tags, and a right program runs")


main()
