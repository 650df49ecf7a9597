"""check_fault.py LIBRARY PROGRAM: a write to a big object after its free ends the program by SIGSEGV, after one line that says so."""

import os
import re
import signal
import subprocess
import sys

library, program = sys.argv[1:3]
done = subprocess.run([program, "fault"], env=os.environ | {"LD_PRELOAD": library}, capture_output=True, text=True)
said = r"numalloc: use after free: write at 0x[0-9a-f]+, byte 1000 of the \d+-byte object at 0x[0-9a-f]+\n"
if done.returncode != -signal.SIGSEGV or not re.fullmatch(said, done.stderr):
    sys.exit(f"status {done.returncode}, stdout {done.stdout!r}, stderr {done.stderr!r}; wanted SIGSEGV and {said!r}")
