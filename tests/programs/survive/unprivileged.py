"""unprivileged.py LIBRARY PROGRAM: locks all its memory as a user without privileges under the limit on locked memory that
systems set by default. What counts against it is address space, so the heap must not hold any in vain."""

import os
import resource
import shutil
import subprocess
import sys
import tempfile

library, program = sys.argv[1:]
LIMIT = 8 << 20
NOBODY = 65534


def drop_privileges():
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (LIMIT, LIMIT))
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


if 0 <= resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] < LIMIT and os.geteuid() != 0:
    print("skipped: less than 8 MiB may be locked here")
    sys.exit(77)
# Where anybody can read.
with tempfile.TemporaryDirectory() as folder:
    os.chmod(folder, 0o755)
    files = [shutil.copy(file, folder) for file in (program, library) if file != "none"]
    for file in files:
        os.chmod(file, 0o755)
    for environment in ({"NUMALLOC_TEST_ANY": "1"}, {"LD_PRELOAD": files[-1]}):
        run = subprocess.run([files[0]], env=environment, preexec_fn=drop_privileges, capture_output=True, text=True, timeout=300)
        print(environment, run.returncode, run.stdout, run.stderr)
        assert run.returncode == 0, "not locked"
        assert not run.stderr
