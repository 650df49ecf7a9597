#!/usr/bin/env python3
"""Locks are held where the sources say so: clang reads the annotations of src/base/thread_safety.h.

    thread_safety.py PROJECT/src        exit status 1, and a line for every fault

A lock of which nothing says what it guards is a fault too, and so is a machine without clang: tests/programs/PACKAGES
names it.
"""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from check import SOURCE, finish

# With assertions and counting, so that no code is left out.
FLAGS = [
    "-std=gnu++20",
    "-fsyntax-only",
    "-Wthread-safety",
    "-Werror",
    "-DNUMALLOC_CHECKS",
    "-DNUMALLOC_COUNTING",
    f"-I{SOURCE / 'src'}",
    f"-I{SOURCE / 'include'}",
]
LOCK = re.compile(r"^\s*(?:constinit )?(?:alignas\(\d+\) )?os::Lock<os::LockRank::\w+> (\w+)", re.M)
ANNOTATION = re.compile(r"NUMALLOC_(?:GUARDED_BY|REQUIRES|EXCLUDES)\(([^()]*)\)")


def errors_of_text(text: str) -> list[str]:
    """What clang says of a source file."""
    done = subprocess.run(["clang++", *FLAGS, "-x", "c++", "-"], input=text, capture_output=True, text=True)
    errors = re.findall(r"error: .*", done.stderr)
    return errors or ([done.stderr] if done.returncode else [])


def without_annotation(files: dict[str, str]) -> list[str]:
    """Locks that no annotation of the same folder names."""
    faults = []
    for path, text in files.items():
        folder = path.rpartition("/")[0]
        named = {
            name
            for other, said in files.items()
            if other.rpartition("/")[0] == folder
            for names in ANNOTATION.findall(said)
            for name in re.findall(r"(\w+)(?=,|$)", names.replace(" ", ""))
        }
        faults += [f"{path}: nothing says what {lock} guards" for lock in LOCK.findall(text) if lock not in named]
    return faults


def main() -> None:
    source = Path(sys.argv[1])
    if shutil.which("clang++") is None:
        finish(["clang++ is not installed: nothing was checked"], "")
    files = {p.relative_to(source).as_posix(): p.read_text() for p in sorted(source.rglob("*")) if p.suffix in {".h", ".cpp"}}
    programs = [path for path in files if path.endswith(".cpp")]
    faults = without_annotation(files)
    # These know members that the other libraries do not have.
    listed = re.search(r"NUMALLOC_HARDENED_SOURCES ([^)]*)", (source.parent / "CMakeLists.txt").read_text())
    hardened = {path.removeprefix("src/") for path in listed[1].split()}
    text_of = {path: ("#define NUMALLOC_HARDENED\n" if path in hardened else "") + f'#include "{path}"\n' for path in programs}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, errors in zip(programs, pool.map(errors_of_text, text_of.values())):
            faults += [f"{path}: {error}" for error in errors]
    locks = sum(len(LOCK.findall(text)) for text in files.values())
    finish(faults, f"{len(programs)} files and {locks} locks: each is held where the sources say so")


if __name__ == "__main__":
    main()
