#!/usr/bin/env python3
"""One way to share a word between threads, and one to have a word of each thread.

    idioms.py PROJECT/src        exit status 1, and a line for every fault

Shared: a std::atomic, with the order said at each access, or the functions of base/atomic.h. Of each thread:
NUMALLOC_THREAD_LOCAL of base/bits.h. Pages go and move by libc's functions only. Below api/, no source asks which library it goes into: it is compiled once.
Names of C are not declared in an unnamed namespace, where gcc 15 mangles them.
"""

import re
import sys
from pathlib import Path

from check import finish
from layers import without_comments

HOMES = {"base/atomic.h", "base/bits.h"}
FOREIGN = re.compile(r"\b(?:__atomic_\w+|__sync_\w+|atomic_ref|__thread|thread_local|volatile)\b")
ASSEMBLY = re.compile(r"__asm__ volatile")
ACCESS = re.compile(r"[.>](load|store|exchange|fetch_\w+|compare_exchange_\w+)\(")
KIND_OF_LIBRARY = re.compile(r"\bNUMALLOC_STATIC\b")
# What takes pages away or moves them.
UNHEARD = re.compile(
    r"SYS_munmap\b(?!, unused)"
    r"|\bcall\(SYS_\w+\b(?!, unseen)[^;]*\b(?:MADV_DONTNEED|MADV_FREE|MADV_REMOVE|MAP_FIXED|MREMAP_MAYMOVE)\b"
)
UNNAMED = re.compile(r"^namespace \{$.*?^\}", re.MULTILINE | re.DOTALL)
# Functions of ours that have the same names: how many arguments those have.
OURS = {"load": 3, "exchange": 2}


def arguments(text: str, start: int) -> list[str]:
    """Of the call whose first argument begins there."""
    depth = 0
    found = [""]
    for c in text[start:]:
        depth += (c in "([{") - (c in ")]}")
        if depth < 0:
            break
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return found


def faults_of_file(path: str, text: str) -> list[str]:
    if path in HOMES:
        return []
    text = without_comments(text)

    def line_of(place: int) -> int:
        return text.count("\n", 0, place) + 1

    faults = [
        f"{path}:{line_of(found.start())}: {found[0]}: base/atomic.h and base/bits.h have what this library uses instead"
        for found in FOREIGN.finditer(ASSEMBLY.sub("__asm__ ________", text))
    ]
    if not path.startswith("api/"):
        faults += [
            f"{path}:{line_of(found.start())}: {found[0]}: this is compiled once for all libraries, and api/ for each"
            for found in KIND_OF_LIBRARY.finditer(text)
        ]
    faults += [
        f"{path}:{line_of(found.start())}: a raw system call that nobody hears of: os/libc_call.h" for found in UNHEARD.finditer(text)
    ]
    faults += [
        f'{path}:{line_of(unnamed.start() + found.start())}: extern "C" in an unnamed namespace: gcc 15 mangles the name'
        for unnamed in UNNAMED.finditer(text)
        for found in re.finditer('extern "', unnamed[0])
    ]
    for found in ACCESS.finditer(text):
        given = arguments(text, found.end())
        if not any("memory_order" in one for one in given) and len(given) != OURS.get(found[1]):
            faults.append(f"{path}:{line_of(found.start())}: {found[1]}() does not say its order")
    return faults


def main() -> None:
    source = Path(sys.argv[1])
    files = [p for p in sorted(source.rglob("*")) if p.suffix in {".h", ".cpp"}]
    finish(
        [fault for p in files for fault in faults_of_file(p.relative_to(source).as_posix(), p.read_text())],
        f"{len(files)} files: one idiom for atomics, one for thread-locals",
    )


if __name__ == "__main__":
    main()
