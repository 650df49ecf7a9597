"""instructions.py LIBRARY PROGRAM [CASE...]: instructions of a malloc and a free, counted by callgrind, loop
and PLT included. Each case runs with two numbers of rounds; the difference quotient leaves start-up
and the first use of a size out. Bounds are the project's targets, in whole instructions as the
peers' figures are (42.07 is 42), and are not to be softened. They are of GCC 12; what another compiler
makes may have one more. The library is libnumalloc-steady.so, which
has a deterministic clock: with the real one a busy machine does more housekeeping in the longer run."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BOUNDS = {
    "pair64": 46,
    "pair1000": 46,
    "pair30000": 49,
    "lifo64": 50,
    "random512": 54,
    "random4000": 64,
    "calloc64": 66,
    "new64": 47,
    "array64": 46,
}
COMPILER = b"GCC: (Debian 12."
FEW, MANY = 40000, 200000

library, program = sys.argv[1], sys.argv[2]
more = 0 if library != "none" and COMPILER in Path(library).read_bytes() else 1
# LD_BIND_NOW: the first call through the PLT must not pay for the loader in one of the two runs.
environment = {**os.environ, "LD_BIND_NOW": "1"}
if library != "none":
    environment["LD_PRELOAD"] = library


def count(case, rounds, folder):
    output = os.path.join(folder, "callgrind")
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", program, case, str(rounds)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    return int(re.search(r"^summary: (\d+)", open(output).read(), re.M).group(1))


failed = False
with tempfile.TemporaryDirectory() as folder:
    for case in sys.argv[3:] or BOUNDS:
        bound = BOUNDS[case] + more
        each = (count(case, MANY, folder) - count(case, FEW, folder)) / (MANY - FEW)
        missed = round(each) > bound
        failed |= missed
        print(f"{case:12} {each:7.2f} instructions (bound {bound}){'  MISSED' if missed else ''}", flush=True)
sys.exit(1 if failed else 0)
