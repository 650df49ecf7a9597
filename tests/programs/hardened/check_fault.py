"""check_fault.py LIBRARY PROGRAM CASE: a wrong access ends the program by SIGSEGV, after one line that says what it was;
with NUMALLOC_BACKTRACE=1 the stack of the access follows."""

import os
import re
import signal
import subprocess
import sys

MiB = 1 << 20
SAID = {
    "fault": r"use after free: write at 0x[0-9a-f]+, byte 1000 of the 3145728-byte object",
    "over_write": rf"overflow: write at 0x[0-9a-f]+, byte 1 behind the {4 * MiB}-byte object",
    "over_read": rf"overflow: read at 0x[0-9a-f]+, byte 1 behind the {4 * MiB}-byte object",
    "under_write": rf"underflow: write at 0x[0-9a-f]+, byte 1 before the {4 * MiB}-byte object",
    "shrunk": rf"overflow: write at 0x[0-9a-f]+, byte 1 behind the {3 * MiB}-byte object",
    "grown": rf"overflow: write at 0x[0-9a-f]+, byte 1 behind the {4 * MiB + 8192}-byte object",
    "moved": rf"overflow: write at 0x[0-9a-f]+, byte 1 behind the {40 * MiB}-byte object",
    "aligned": rf"overflow: write at 0x[0-9a-f]+, byte 1 behind the {4 * MiB}-byte object",
    "bag": r"overflow: write at 0x[0-9a-f]+, byte 17 behind the 32752-byte object",  # its tail comes first
}

library, program, case = sys.argv[1:4]
access = "read" if "read" in SAID[case] else "write"
line = rf"numalloc: {SAID[case]} at 0x[0-9a-f]+\n"
stack = rf"numalloc:   {access} by thread \d+:\nnumalloc:     #0 0x[0-9a-f]+ {re.escape(os.path.realpath(program))}\+0x[0-9a-f]+\n(numalloc:     #.*\n)*"
for backtrace, said in (("0", line), ("1", line + stack)):
    env = os.environ | {"LD_PRELOAD": library, "NUMALLOC_BACKTRACE": backtrace}
    done = subprocess.run([program, case], env=env, capture_output=True, text=True)
    if done.returncode != -signal.SIGSEGV or not re.fullmatch(said, done.stderr):
        sys.exit(f"status {done.returncode}, stdout {done.stdout!r}, stderr {done.stderr!r}; wanted SIGSEGV and {said!r}")
