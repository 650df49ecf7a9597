"""emulated.py LIBRARY OUTPUT COMMAND...: a user-mode emulator pays for address space that its guest maps. The whole emulator
with a small program stays below 64 MiB."""

import os
import platform
import resource
import subprocess
import sys

library, wanted, *command = sys.argv[1:]
emulator = f"qemu-{platform.machine()}"
# Before it takes the machine's memory.
limit = 4 << 30
child = subprocess.Popen(
    [emulator, "-E", f"LD_PRELOAD={library}", *command],
    stdout=subprocess.PIPE,
    text=True,
    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
)
output = child.stdout.read()
_, status, usage = os.wait4(child.pid, 0)
print(f"status {status}, resident at most {usage.ru_maxrss / 1024:.1f} MiB, printed: {output}")
assert status == 0
assert output == wanted + "\n"
assert usage.ru_maxrss < 64 * 1024
