#!/usr/bin/env python3
"""The library as other compilers build it, warnings being errors; a threaded program runs on each.

    compilers.py clang | aarch64

aarch64 is cross-compiled and run under qemu-user, whose own tables of the address space would take
more memory than there is for the usual reserve. Status 77 where the compiler is not installed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from check import HERE, SOURCE, run

SIZE_OF_CLASS = "1152"  # see outside/program.c
COMPILERS = {
    "clang": ("clang", "clang++", [], []),
    "aarch64": (
        "aarch64-linux-gnu-gcc",
        "aarch64-linux-gnu-g++",
        ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64"],
        ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-E", "NUMALLOC_RESERVE=1G"],
    ),
}


def main(name: str) -> None:
    cc, cxx, system, runner = COMPILERS[name]
    missing = [tool for tool in (cc, cxx, *runner[:1]) if shutil.which(tool) is None]
    if missing:
        print(f"not installed: {' '.join(missing)}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        # Where the preset of that name was built, what has changed since is made and taken.
        build = SOURCE / "build" / name
        if not (build / "build.ninja").exists():
            build = Path(work) / "build"
            run(
                "cmake",
                "-S",
                SOURCE,
                "-B",
                build,
                "-G",
                "Ninja",
                "-DCMAKE_BUILD_TYPE=Release",
                "-DNUMALLOC_BUILD_TESTS=OFF",
                "-DNUMALLOC_BUILD_BENCHMARKS=OFF",
                "-DNUMALLOC_WERROR=ON",
                f"-DCMAKE_C_COMPILER={cc}",
                f"-DCMAKE_CXX_COMPILER={cxx}",
                *system,
            )
        run("cmake", "--build", build, "--target", "numalloc_shared")
        program = Path(work) / "program"
        run(cc, "-O2", "-pthread", HERE / "outside" / "program.c", "-o", program)
        preload = f"LD_PRELOAD={build / 'libnumalloc.so'}"
        command = [*runner, "-E", preload, program] if runner else ["env", preload, program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={"PATH": os.environ["PATH"]})
    if done.returncode != 0 or done.stdout.split() != [SIZE_OF_CLASS]:
        sys.exit(f"{name}: exit status {done.returncode}, said {done.stdout!r} {done.stderr!r}")
    print(f"{name}: builds without a warning, and runs")


main(sys.argv[1])
