"""core.py COMMAND...: the core of a crashing program holds what it used, not what the heap
reserved, and gdb can read it. Where the kernel hands cores to a program of the system, gdb takes
the core itself."""

import os
import resource
import subprocess
import sys
import tempfile
import time

pattern = open("/proc/sys/kernel/core_pattern").read().strip()
with tempfile.TemporaryDirectory() as folder:
    if pattern.startswith("|") or "/" in pattern:
        print(f"skipped: core_pattern is {pattern}")
        sys.exit(77)

    def allow_core():
        resource.setrlimit(resource.RLIMIT_CORE, (2 << 30, 2 << 30))

    if resource.getrlimit(resource.RLIMIT_CORE)[1] not in (resource.RLIM_INFINITY,) and os.geteuid() != 0:
        print("skipped: cores are limited here")
        sys.exit(77)
    start = time.monotonic()
    run = subprocess.run([os.path.abspath(sys.argv[1]), *sys.argv[2:]], cwd=folder, preexec_fn=allow_core, capture_output=True, timeout=300)
    seconds = time.monotonic() - start
    assert run.returncode == -11, (run.returncode, run.stderr)
    cores = [name for name in os.listdir(folder) if name.startswith("core")]
    assert len(cores) == 1, cores
    core = os.path.join(folder, cores[0])
    stat = os.stat(core)
    apparent, stored = stat.st_size >> 20, stat.st_blocks * 512 >> 20
    print(f"core: {apparent} MiB long, {stored} MiB stored, written in {seconds:.1f} s")
    assert stored >= 15, "the blocks in use are missing"
    assert stored <= 80, "more than the program used"
    assert apparent <= 512, "the reserve was dumped as holes"
    assert seconds < 20
    program = sys.argv[-1]
    text = subprocess.run(["gdb", "-batch", "-nx", "-ex", "bt", program, core], capture_output=True, text=True, timeout=300)
    assert "main" in text.stdout, text.stdout + text.stderr
