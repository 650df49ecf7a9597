#!/usr/bin/env python3
"""The Debian packages and the archive that cpack makes: what is in each, and that they serve.

    packages.py BUILD_DIRECTORY C_COMPILER CXX_COMPILER

Both Debian packages are unpacked into an empty folder. A program runs under the library there; others are
compiled against it by pkg-config and by find_package. Made twice, each file has the same bytes.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from check import HERE, finish, run
from package import SIZE_OF_CLASS, through_cmake, through_pkg_config

EPOCH, EPOCH_DAY = "1700000000", "14 Nov  2023"


def made(build: str, folder: Path, kinds: str, *words: str) -> dict[str, bytes]:
    """Files by name. A folder of its own each time: cpack keeps what it has staged."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    command = ["cpack", "--config", f"{build}/CPackConfig.cmake", "-G", kinds, "-B", str(folder), *words]
    done = subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"cpack: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return {path.name: path.read_bytes() for path in folder.glob("*.*")}


def made_twice(build: str, work: Path, kinds: str, *words: str) -> tuple[Path, list[str]]:
    """The folder of the files, and a line for each that differs."""
    first, second = (made(build, work / name, kinds, *words) for name in ("one", "two"))
    return work / "one", [f"{name}: made twice, it differs" for name in first if first[name] != second.get(name)]


def serves(root: Path, library: Path, work: Path, cc: str, cxx: str) -> list[str]:
    """What lies unpacked in `root`: preloaded, and linked with by CMake and pkg-config."""
    faults = through_cmake(root / "usr", library.parent, work, cc, cxx)
    faults += through_pkg_config(library.parent, work, {"c": cc, "cpp": cxx})
    run(cc, HERE / "outside/plain.c", "-o", work / "plain")
    done = subprocess.run([work / "plain"], capture_output=True, text=True, env={"LD_PRELOAD": str(library)}, timeout=60)
    if done.stdout.strip() != SIZE_OF_CLASS:
        faults.append(f"preloaded, the unpacked library did not serve: {done.stdout!r} {done.stderr!r}")
    return faults


def check_fields(package: Path, name: str, needs: str) -> list[str]:
    faults = []
    if (told := run("dpkg-deb", "--field", package, "Package").strip()) != name:
        faults.append(f"{package.name} is the package {told}; wanted {name}")
    if needs not in (told := run("dpkg-deb", "--field", package, "Depends")):
        faults.append(f"{name} depends on {told.strip()}; wanted {needs} among it")
    return faults


def main() -> None:
    build, cc, cxx = sys.argv[1:4]
    if not shutil.which("dpkg-deb"):
        print("dpkg-deb is not here")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="numalloc-packages-") as folder:
        work = Path(folder)
        packages, faults = made_twice(build, work, "DEB;TZST", "-D", "CPACK_COMPONENTS_ALL=library;development")
        for archive in packages.glob("*.tar.zst"):
            late = [line for line in run("cmake", "-E", "tar", "tvf", archive).splitlines() if EPOCH_DAY not in line]
            faults += [f"{archive.name}: not of the time that SOURCE_DATE_EPOCH says: {line}" for line in late]
        debs = {path.name.split("_")[0]: path for path in packages.glob("*.deb")}
        if debs.keys() != {"libnumalloc0", "libnumalloc-dev"} or not list(packages.glob("*.tar.zst")):
            finish([*faults, f"cpack made {sorted(path.name for path in packages.iterdir())}"], "")
        faults += check_fields(debs["libnumalloc0"], "libnumalloc0", "libc6 (>=")
        faults += check_fields(debs["libnumalloc-dev"], "libnumalloc-dev", "libnumalloc0 (=")
        root = work / "root"
        run("dpkg-deb", "-x", debs["libnumalloc0"], root)
        library = next(root.rglob("libnumalloc.so.0"), None)
        if library is None or list(root.rglob("*.h")) or list(root.rglob("libnumalloc.so")):
            finish([*faults, "libnumalloc0 lacks libnumalloc.so.0, or has what libnumalloc-dev should have"], "")
        run("dpkg-deb", "-x", debs["libnumalloc-dev"], root)
        faults += serves(root, library, work, cc, cxx)
    finish(faults, "two packages and an archive, each the same bytes twice; they serve")


if __name__ == "__main__":
    main()
