#!/usr/bin/env python3
"""The C++ face compiles wherever its users are: each compiler there is, C++17 and C++20, with and without
exceptions and RTTI, and no warning at all.

    headers.py C_COMPILER CXX_COMPILER
"""

import shutil
import subprocess
import sys
from pathlib import Path

from check import HERE, SOURCE, finish

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Wshadow", "-Werror"]
VARIANTS = [["-std=c++17"], ["-std=c++20"], ["-std=c++17", "-fno-exceptions", "-fno-rtti"]]


def main() -> None:
    compilers = {str(Path(name).resolve()): name for name in map(shutil.which, [sys.argv[2], "clang++"]) if name}
    faults = []
    for compiler in compilers.values():
        for variant in VARIANTS:
            command = [compiler, *variant, *WARNINGS, "-fsyntax-only", f"-I{SOURCE / 'include'}", HERE / "outside/face.cpp"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                faults.append(f"{compiler} {' '.join(variant)}:\n{done.stderr[:3000]}")
    c = [sys.argv[1], "-std=c99", *WARNINGS, "-Wstrict-prototypes", "-fsyntax-only", "-x", "c", "-"]
    done = subprocess.run(
        [*c, f"-I{SOURCE / 'include'}"], input="#include <numalloc/numalloc.h>\nint used;\n", capture_output=True, text=True
    )
    if done.returncode:
        faults.append(f"numalloc.h as C99:\n{done.stderr[:3000]}")
    finish(faults, f"numalloc.hpp under {', '.join(compilers.values())}, {len(VARIANTS)} ways; numalloc.h as C99")


if __name__ == "__main__":
    main()
