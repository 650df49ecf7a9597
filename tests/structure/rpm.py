#!/usr/bin/env python3
"""The .rpm packages that cpack makes: what is in each, what they need and provide, and that they serve.

    rpm.py BUILD_DIRECTORY C_COMPILER CXX_COMPILER      exit status 77 without rpmbuild

They are not installed, since Debian's rpm knows nothing of the packages that are here: they are unpacked into
an empty folder, and used from there as packages.py does.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from check import SOURCE, finish, run
from packages import made_twice, serves

_FOR_COMPILING = re.compile(r"\.(h|hpp|def|a|so|pc|cmake)$")
_PRELOADED = ("libnumalloc-binding.so", "libnumalloc-hardened.so")


def version() -> str:
    return re.search(r"project\(numalloc VERSION ([\d.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]


def lines(package: Path, *asked: str) -> list[str]:
    return run("rpm", "-qp", *asked, package).splitlines()


def check_library(package: Path) -> list[str]:
    needs, gives = lines(package, "--requires"), lines(package, "--provides")
    faults = [] if any(line.startswith("libc.so.6(GLIBC_") for line in needs) else [f"numalloc needs no version of glibc: {needs}"]
    strange = re.compile(r"(?!libc\.so|rpmlib\(|rtld\(|/bin/sh|/sbin/ldconfig|ld-linux)")
    faults += [f"numalloc needs {line}" for line in needs if strange.match(line)]
    faults += [
        f"numalloc does not provide {name}"
        for name in ("libnumalloc.so.0()(64bit)", "numalloc(x86-64)")
        if not any(line.startswith(name) for line in gives)
    ]
    if run("rpm", "-qp", "--scripts", package).count("ldconfig") != 2:
        faults.append("numalloc does not call ldconfig when it comes and when it goes")
    names = {Path(line).name for line in lines(package, "--list")}
    faults += [f"numalloc lacks {name}" for name in (*_PRELOADED, "libnumalloc.so.0", "LICENSE") if name not in names]
    faults += [
        f"numalloc has {name}, which numalloc-devel should have" for name in names if _FOR_COMPILING.search(name) and name not in _PRELOADED
    ]
    return faults


def check_development(package: Path) -> list[str]:
    needs = lines(package, "--requires")
    faults = [] if f"numalloc = {version()}" in needs else [f"numalloc-devel needs {needs}; wanted this version of numalloc among it"]
    return faults + [
        f"numalloc-devel has {line}" for line in lines(package, "--list") if not _FOR_COMPILING.search(line) and "/numalloc" not in line
    ]


def check_both(package: Path) -> list[str]:
    """A package that owns a folder of the system's is in conflict with the system's."""
    held = run("rpm", "-qp", "--queryformat", "[%{FILEMODES:perms} %{FILENAMES}\n]", package).splitlines()
    faults = [f"{package.name} owns {line.split()[1]}" for line in held if line[0] == "d" and not line.endswith("/numalloc")]
    told = run("rpm", "-qp", "--queryformat", "%{LICENSE}, %{DESCRIPTION}", package)
    if not told.startswith("MIT, ") or "CPack" in told:
        faults.append(f"{package.name} says of itself: {told}")
    return faults


def unpacked(package: Path, root: Path) -> None:
    root.mkdir(exist_ok=True)
    with subprocess.Popen(["rpm2cpio", package], stdout=subprocess.PIPE) as archive:
        subprocess.run(["cpio", "-idm", "--quiet"], cwd=root, stdin=archive.stdout, check=True)


def main() -> None:
    build, cc, cxx = sys.argv[1:4]
    if missing := [name for name in ("rpmbuild", "rpm2cpio", "cpio") if not shutil.which(name)]:
        print(f"{missing[0]} is not here")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="numalloc-rpm-") as folder:
        work = Path(folder)
        packages, faults = made_twice(build, work, "RPM")
        rpms = {run("rpm", "-qp", "--queryformat", "%{NAME}", path): path for path in packages.glob("*.rpm")}
        if rpms.keys() != {"numalloc", "numalloc-devel"}:
            finish([*faults, f"cpack made the packages {sorted(rpms)}"], "")
        faults += check_library(rpms["numalloc"]) + check_development(rpms["numalloc-devel"])
        for package in rpms.values():
            faults += check_both(package)
            unpacked(package, work / "root")
        library = next((work / "root").rglob("libnumalloc.so.0"))
        faults += serves(work / "root", library, work, cc, cxx)
    finish(faults, "two packages, each the same bytes twice; they serve")


if __name__ == "__main__":
    main()
