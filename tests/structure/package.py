#!/usr/bin/env python3
"""What `cmake --install` leaves, used from an outside project by its CMake package and pkg-config.

    package.py BUILD_DIRECTORY C_COMPILER CXX_COMPILER

C and C++, shared, archived and fully static; every program runs and proves whose malloc it has.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from check import HERE, SOURCE, finish, run

SIZE_OF_CLASS = "1152"  # see outside/program.c
LANGUAGES = {"c": "c", "cpp": "c++"}


def runs_on_numalloc(program: Path, libraries: Path) -> list[str]:
    env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(libraries)}
    done = subprocess.run([program], capture_output=True, text=True, env=env, timeout=60)
    if done.returncode != 0 or done.stdout.strip() != SIZE_OF_CLASS:
        return [f"{program.name}: exit status {done.returncode}, said {done.stdout!r} {done.stderr!r}"]
    misused = subprocess.run([program, "misuse"], capture_output=True, text=True, env=env, timeout=60)
    if misused.returncode == 0 or "numalloc: invalid pointer in free" not in misused.stderr:
        return [f"{program.name}: an invalid free was not numalloc's: {misused.returncode} {misused.stderr!r}"]
    return []


def is_static(program: Path) -> bool:
    return "INTERP" not in run("readelf", "-lW", program)


def check_linking(program: Path, kind: str) -> list[str]:
    needs = "libnumalloc.so" in run("readelf", "-dW", program)
    if kind == "shared" and not needs:
        return [f"{program.name}: does not need libnumalloc.so"]
    if kind != "shared" and needs:
        return [f"{program.name}: needs libnumalloc.so although linked with the archive"]
    if kind == "static" and not is_static(program):
        return [f"{program.name}: not fully static"]
    return []


def through_cmake(prefix: Path, libraries: Path, work: Path, cc: str, cxx: str) -> list[str]:
    build = work / "cmake"
    run(
        "cmake",
        "-S",
        HERE / "outside",
        "-B",
        build,
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={cc}",
        f"-DCMAKE_CXX_COMPILER={cxx}",
    )
    run("cmake", "--build", build)
    faults = []
    for kind in ("shared", "archive", "static"):
        for language in LANGUAGES:
            program = build / f"{kind}_{language}"
            faults += check_linking(program, kind) or runs_on_numalloc(program, libraries)
    return faults


def through_pkg_config(libraries: Path, work: Path, compilers: dict[str, str]) -> list[str]:
    os.environ["PKG_CONFIG_PATH"] = str(libraries / "pkgconfig")
    flags = {
        kind: run("pkg-config", *options, "--cflags", "--libs", "numalloc").split()
        for kind, options in (("shared", ()), ("static", ("--static",)))
    }
    faults = []
    for kind in flags:
        for language, compiler in compilers.items():
            program = work / f"pkgconfig_{kind}_{language}"
            run(
                compiler,
                HERE / "outside" / f"program.{language}",
                "-o",
                program,
                *flags[kind],
                "-pthread",
                *(["-static"] if kind == "static" else []),
            )
            faults += check_linking(program, kind) or runs_on_numalloc(program, libraries)
    return faults


def check_files(prefix: Path, libraries: Path) -> list[str]:
    """The header, once there is one, and nothing that names where it was built."""
    faults = []
    for header in sorted((SOURCE / "include/numalloc").glob("*.h*")):
        if not (prefix / "include/numalloc" / header.name).is_file():
            faults.append(f"not installed: {header.name}")
    for text in [*libraries.glob("pkgconfig/*.pc"), *libraries.glob("cmake/numalloc/*.cmake")]:
        if str(SOURCE) in text.read_text():
            faults.append(f"{text.name} names the source folder")
    version = re.search(r"project\(numalloc VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())
    if version and not (libraries / f"libnumalloc.so.{version[1]}").is_file():
        faults.append(f"no libnumalloc.so.{version[1]}")
    return faults


def main() -> None:
    build, cc, cxx = sys.argv[1:4]
    with tempfile.TemporaryDirectory(prefix="numalloc-package-") as folder:
        work = Path(folder)
        prefix = work / "prefix"
        run("cmake", "--install", build, "--prefix", prefix)
        libraries = next(iter(prefix.glob("lib*/**/libnumalloc.a")), None)
        if libraries is None:
            finish(["no libnumalloc.a was installed"], "")
        libraries = libraries.parent
        faults = check_files(prefix, libraries)
        faults += through_cmake(prefix, libraries, work, cc, cxx)
        faults += through_pkg_config(libraries, work, {"c": cc, "cpp": cxx})
    finish(faults, "C and C++, shared, archived and static, by CMake and pkg-config")


if __name__ == "__main__":
    main()
