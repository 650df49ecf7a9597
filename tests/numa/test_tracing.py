"""The tracepoints under a real kernel's tracer: the example for bpftrace, in the virtual machine."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NUMALLOC = [sys.executable, "-c", "from numalloc_tools.cli import main; main()"]
PROJECT = Path(__file__).parents[2]
EXAMPLE = PROJECT / "examples/bpftrace/slow-paths.bt"
# Threads of two nodes exchange blocks; the tracer is attached before, and sees what went home.
PROGRAM = "build/release/bench/exchange"


def test_the_example_shows_what_the_slow_paths_do(library, tmp_path):
    bpftrace, program = shutil.which("bpftrace"), PROJECT / PROGRAM
    if not bpftrace:
        pytest.skip("bpftrace is not installed")
    if not program.exists():
        pytest.skip(f"{PROGRAM} is not built")
    script = tmp_path / "trace.sh"
    script.write_text(
        f"bpftrace {EXAMPLE} {library} > /tmp/traced 2>&1 & tracer=$!\n"
        "for i in $(seq 100); do grep -q Attaching /tmp/traced && break; sleep .3; done; sleep 4\n"
        f"LD_PRELOAD={library} {program} --threads 4 --scale 0.02; sleep 3; kill -INT $tracer; wait $tracer; cat /tmp/traced; true\n"
    )
    words = ["lab", "run", "--nodes", "2", "--memory-per-node", "1G"]
    for file in (bpftrace, library, str(program), str(EXAMPLE), str(script)):
        words += ["--file", file]
    done = subprocess.run([*NUMALLOC, *words, "--", "/bin/sh", str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^@fetched_objects\[[01]\]: [1-9]", done.stdout, re.M), done.stdout
    assert re.search(r"^@sent_home_objects\[[01]\]: [1-9]", done.stdout, re.M), done.stdout
    assert not re.search(r"^@spilled_bytes", done.stdout, re.M), "no node was full"
