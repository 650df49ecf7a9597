"""check_tracepoints.py LIBRARY PROGRAM: gdb stops a real program at tracepoints and reads their arguments. Exit status 77 where
there is no gdb, where it may not trace, or where the library was built without <sys/sdt.h>."""

import re
import shutil
import subprocess
import sys

library, program = sys.argv[1:]
if not shutil.which("gdb"):
    sys.exit(77)
if "stapsdt" not in subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True).stdout:
    sys.exit(77)
commands = [
    "set startup-with-shell off",
    f"set environment LD_PRELOAD {library}",
    "set debuginfod enabled off",
    "break main",
    "run",
    "break -probe-stap numalloc:big_allocate",
    "continue",
    r'printf "big_allocate %d %lu\n", $_probe_arg0, $_probe_arg2',
    "delete",
    "break -probe-stap numalloc:detach",
    "continue",
    r'printf "detach %d\n", $_probe_arg0',
    "kill",
]
words = [word for command in commands for word in ("-ex", command)]
done = subprocess.run(["gdb", "-nx", "-batch", *words, program], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
text = done.stdout + done.stderr
print(text)
if "ptrace: Operation not permitted" in text:
    sys.exit(77)
# The program's first block above 512 KiB has 797,161 bytes: see its source.
assert re.search(r"^big_allocate 0 797161$", text, re.M), "big_allocate was not passed with its arguments"
assert re.search(r"^detach 0$", text, re.M), "detach was not passed"
