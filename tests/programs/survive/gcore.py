"""gcore.py LIBRARY PROGRAM: what gcore writes of a running program is at most 1.5 times what it writes under
glibc's malloc: what the heap does not use is not dumped. A reserve that is held is not either."""

import os
import subprocess
import sys
import tempfile

library, program = sys.argv[1:]


def core_bytes(environment):
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen([program], env=os.environ | environment, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout.readline() == "ready\n"
            core = os.path.join(folder, "core")
            made = subprocess.run(["gcore", "-o", core, str(child.pid)], capture_output=True, text=True, timeout=300)
            child.kill()
            if "ptrace" in made.stderr and "not permitted" in made.stderr:
                print("skipped: no process may be traced here")
                sys.exit(77)
            stat = os.stat(f"{core}.{child.pid}")
            return max(stat.st_size, stat.st_blocks * 512)


theirs = core_bytes({"NUMALLOC_TEST_ANY": "1"})
print(f"glibc {theirs / 2**20:.1f} MiB")
for options in ({}, {"NUMALLOC_RESERVE": "64G"}):
    ours = core_bytes({"LD_PRELOAD": library} | options)
    print(f"numalloc {options or ''} {ours / 2**20:.1f} MiB")
    assert ours <= 1.5 * theirs
