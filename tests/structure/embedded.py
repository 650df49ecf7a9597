#!/usr/bin/env python3
"""numalloc built by another project with its own sources, through FetchContent or add_subdirectory.

    embedded.py C_COMPILER CXX_COMPILER

The same programs as package.py's, linked with numalloc::numalloc and numalloc::numalloc_static. The other
project gets libraries alone: no tests, no benchmark programs, and nothing that it would install.
"""

import sys
import tempfile
from pathlib import Path

from check import HERE, SOURCE, finish, run
from package import LANGUAGES, check_linking, runs_on_numalloc


def main() -> None:
    cc, cxx = sys.argv[1:3]
    faults = []
    with tempfile.TemporaryDirectory(prefix="numalloc-embedded-") as folder:
        build, prefix = Path(folder) / "build", Path(folder) / "prefix"
        # Unoptimised, since what is asked is how the parts come together.
        run(
            "cmake",
            "-G",
            "Ninja",
            "-S",
            HERE / "outside",
            "-B",
            build,
            f"-DNUMALLOC_SOURCES={SOURCE}",
            f"-DCMAKE_C_COMPILER={cc}",
            f"-DCMAKE_CXX_COMPILER={cxx}",
            "-DCMAKE_BUILD_TYPE=Debug",
            "-DCMAKE_C_FLAGS_DEBUG=-O0",
            "-DCMAKE_CXX_FLAGS_DEBUG=-O0",
        )
        targets = run("cmake", "--build", build, "--target", "help")
        faults += [
            f"the other project gets the target {name}"
            for name in ("program_api", "bench", "research", "numascope")
            if f"\n{name}: " in targets
        ]
        run("cmake", "--build", build)
        libraries = next(build.rglob("libnumalloc.so")).parent
        for kind in ("shared", "archive", "static"):
            for language in LANGUAGES:
                program = build / f"{kind}_{language}"
                faults += check_linking(program, kind) or runs_on_numalloc(program, libraries)
        run("cmake", "--install", build, "--prefix", prefix)
        faults += [f"the other project would install {path.relative_to(prefix)}" for path in prefix.rglob("*.*")]
    finish(faults, "C and C++, shared, archived and static, by FetchContent")


if __name__ == "__main__":
    main()
