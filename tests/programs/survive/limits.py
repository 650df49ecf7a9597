"""limits.py LIBRARY PROGRAM: under a limit on address space a program gets within 15 % of what it gets
from glibc's malloc: in small blocks, in one large block, in threads and in mappings beside the heap.
So it is with a limit from the start, with one that the program sets itself, and with a small reserve."""

import os
import resource
import subprocess
import sys

library, program = sys.argv[1:]
MIB = 1 << 20
ROWS = ["small", "large", "threads", "mappings"]


def run(row, mib, when, environment):
    def limit():
        if when == "start":
            resource.setrlimit(resource.RLIMIT_AS, (mib * MIB, mib * MIB))

    result = subprocess.run(
        [program, row, str(mib), when], env=os.environ | environment, preexec_fn=limit, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, (row, mib, when, environment, result)
    assert not result.stderr, result.stderr
    return int(result.stdout)


failures = 0
for mib in (256, 1024):
    for row in ROWS:
        theirs = run(row, mib, "start", {"NUMALLOC_TEST_ANY": "1"})
        for name, when, options in [
            ("from the start", "start", {}),
            ("set later", "later", {}),
            ("with a reserve of 16 MiB", "start", {"NUMALLOC_RESERVE": "16M"}),
        ]:
            if library == "none":
                continue
            ours = run(row, mib, when, {"LD_PRELOAD": library} | options)
            good = ours >= 0.85 * theirs
            failures += not good
            print(f"{mib:5} MiB {name:25} {row:9} {ours:5} (glibc {theirs}){'' if good else '   TOO LITTLE'}")
sys.exit(failures != 0)
