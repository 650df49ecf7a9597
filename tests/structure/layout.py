#!/usr/bin/env python3
"""What most programs never run lies apart from the rest of the library (NUMALLOC_SELDOM_RUN in cmake/sources.cmake).

    layout.py LIBRARY

The kernel maps 64 KiB of a file where a page of it is needed, so a process that runs code all over the library has all
of it in its resident set. Held by what is exported: the interface lies behind the malloc family and pthread_create.
"""

import sys

from check import finish, run

EVERY_PROGRAM = "malloc free calloc realloc aligned_alloc _Znwm _ZdlPv pthread_create".split()


def faults_of(symbols: str) -> list[str]:
    """`symbols`: nm's output for a library's exported symbols."""
    address = {words[2]: int(words[0], 16) for words in map(str.split, symbols.splitlines())}
    interface = {name: where for name, where in address.items() if "@@NUMALLOC_" in name}
    if not interface:
        return ["no function of the interface is exported"]
    last = max(EVERY_PROGRAM, key=address.__getitem__)
    first = min(interface, key=interface.__getitem__)
    if address[last] < interface[first]:
        return []
    return [f"{first}, which few programs call, lies before {last}"]


def main() -> None:
    finish(faults_of(run("nm", "-D", "--defined-only", sys.argv[1])), "what most programs never run lies behind the rest")


if __name__ == "__main__":
    main()
