#!/usr/bin/env python3
"""examples/ as a user builds it: from the installed package, in a project of its own; every program runs.

examples.py BUILD_DIRECTORY C_COMPILER CXX_COMPILER
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from check import SOURCE, finish, run


def main() -> None:
    build, cc, cxx = sys.argv[1:4]
    examples = SOURCE / "examples"
    programs = [p.stem for p in sorted(examples.glob("*.c*")) if p.suffix in {".c", ".cpp"}]
    faults = []
    with tempfile.TemporaryDirectory(prefix="numalloc-examples-") as folder:
        prefix, work = Path(folder) / "prefix", Path(folder) / "build"
        run("cmake", "--install", build, "--prefix", prefix)
        run(
            "cmake",
            "-S",
            examples,
            "-B",
            work,
            f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCMAKE_C_COMPILER={cc}",
            f"-DCMAKE_CXX_COMPILER={cxx}",
            "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON",
        )
        run("cmake", "--build", work, "--parallel", "2")
        libraries = next(prefix.glob("lib*/**/libnumalloc.so")).parent
        for name in programs:
            if name == "stencil" and "OpenMP_C_FLAGS:STRING=NOTFOUND" in (work / "CMakeCache.txt").read_text():
                print("-- stencil left out: the compiler has no OpenMP")
                continue
            if not (work / name).exists():
                faults.append(f"{name} was not built")
                continue
            done = subprocess.run(
                [work / name],
                capture_output=True,
                text=True,
                timeout=60,
                env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(libraries), "OMP_NUM_THREADS": "4"},
            )
            print(f"-- {name}\n{done.stdout}", end="")
            if done.returncode or "pages" not in done.stdout:
                faults.append(f"{name}: exit status {done.returncode}, said {done.stdout!r} {done.stderr!r}")
    finish(faults, f"{len(programs)} examples, built from the installed package")


if __name__ == "__main__":
    main()
