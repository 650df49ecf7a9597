#!/usr/bin/env python3
"""The interface's binary form, held against the dump that golden/abi.xml is: functions, their types, structs, versions.

    abi.py LIBRARY [--write]        status 77 without Debian's abigail-tools, or a library without debugging information

Any difference is a fault, so that two people see it. docs/abi.md says which are allowed. --write makes the dump anew.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from check import HERE, SOURCE, finish

GOLDEN = HERE / "golden/abi.xml"
SUPPRESSIONS = HERE / "golden/abi.suppr"
DUMP = [
    "abidw",
    "--suppressions",
    SUPPRESSIONS,
    "--headers-dir",
    SOURCE / "include",
    "--drop-private-types",
    "--drop-undefined-syms",
    "--exported-interfaces-only",
    "--no-elf-needed",
    "--no-corpus-path",
    "--no-comp-dir-path",
    "--no-show-locs",
    "--no-parameter-names",
]
MEANINGS = {1: "abidiff failed", 4: "changed", 8: "changed so that programs break"}


def dump(library: str, into: Path) -> None:
    with into.open("w") as file:
        subprocess.run([*DUMP, library], stdout=file, check=True)


def main() -> None:
    library = sys.argv[1]
    if not shutil.which("abidw") or ".debug_info" not in subprocess.run(["readelf", "-SW", library], capture_output=True, text=True).stdout:
        print("abidw or debugging information is not there; package abigail-tools")
        sys.exit(77)
    if "--write" in sys.argv:
        dump(library, GOLDEN)
        return
    with tempfile.TemporaryDirectory() as folder:
        now = Path(folder) / "abi.xml"
        dump(library, now)
        # Of the dumps, so that the malloc family is left out on both sides.
        done = subprocess.run(["abidiff", "--suppressions", SUPPRESSIONS, GOLDEN, now], capture_output=True, text=True)
    faults = [f"{meaning}:\n{done.stdout[:6000]}{done.stderr[:1000]}" for bit, meaning in MEANINGS.items() if done.returncode & bit]
    finish(faults[-1:], "the binary interface is golden/abi.xml's")


if __name__ == "__main__":
    main()
