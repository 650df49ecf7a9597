#!/usr/bin/env python3
"""Locks are held where the sources say so: clang reads the annotations of src/base/thread_safety.h.

    thread_safety.py PROJECT/src        exit status 1, and a line for every fault

A lock of which nothing says what it guards is a fault too, and so is a machine without clang: tests/programs/PACKAGES
names it.
"""

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from check import SOURCE, finish

# With assertions and counting, so that no code is left out.
FLAGS = [
    "-std=gnu++20",
    "-Wthread-safety",
    "-Werror",
    "-DNUMALLOC_CHECKS",
    "-DNUMALLOC_COUNTING",
    f"-I{SOURCE / 'src'}",
    f"-I{SOURCE / 'include'}",
]
# What most files include is read once: that is two thirds of the time.
STANDARD = "atomic cerrno cstddef cstdint cstdlib cstring initializer_list new type_traits".split()
LOCK = re.compile(r"^\s*(?:constinit )?(?:alignas\(\d+\) )?os::Lock<os::LockRank::\w+> (\w+)", re.M)
ANNOTATION = re.compile(r"NUMALLOC_(?:GUARDED_BY|REQUIRES|EXCLUDES)\(([^()]*)\)")


@cache
def standard_headers() -> str:
    folder = tempfile.mkdtemp(prefix="thread_safety.")
    atexit.register(shutil.rmtree, folder)
    headers = "".join(f"#include <{name}>\n" for name in STANDARD)
    done = subprocess.run(["clang++", *FLAGS, "-x", "c++-header", "-", "-o", f"{folder}/standard.pch"], input=headers, text=True)
    done.check_returncode()
    return f"{folder}/standard.pch"


def errors_of_text(text: str) -> list[str]:
    """What clang says of a source file."""
    command = ["clang++", *FLAGS, "-fsyntax-only", "-include-pch", standard_headers(), "-x", "c++", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
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
    standard_headers()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, errors in zip(programs, pool.map(lambda path: errors_of_text(f'#include "{path}"\n'), programs)):
            faults += [f"{path}: {error}" for error in errors]
    locks = sum(len(LOCK.findall(text)) for text in files.values())
    finish(faults, f"{len(programs)} files and {locks} locks: each is held where the sources say so")


if __name__ == "__main__":
    main()
