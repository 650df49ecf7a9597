"""The real command, programs of every kind for it to look at, and where they are."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from limits import LIMIT

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("NUMALLOC_LIBRARY", ROOT / "build/release/libnumalloc.so"))
NUMALLOC = [sys.executable, "-c", "from numalloc_tools.cli import main; main()"]
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
ALLOWED = min(os.sched_getaffinity(0))  # a CPU that the tests may use
NOBODY = pwd.getpwnam("nobody")


def numalloc(*arguments: object, around: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("NUMALLOC_", "LD_PRELOAD", "OMP_"))}
    return subprocess.run(
        [*around, *NUMALLOC, *map(str, arguments)], env=plain | environment, capture_output=True, text=True, timeout=LIMIT
    )


def doctor(*arguments: object, **options) -> dict[str, dict]:
    """The findings by their names; the exit status must agree with them."""
    done = numalloc("doctor", "--json", *arguments, **options)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    bad = [finding for finding in found["findings"] if finding["severity"] == "bad"]
    assert (done.returncode == 1) == bool(bad) == (found["worst"] == "bad")
    assert all(finding["why"] for finding in found["findings"] if finding["severity"] in ("warning", "bad"))
    return {finding["name"]: finding for finding in found["findings"]}


def of_program(*command: object, **options) -> dict[str, dict]:
    if not LIBRARY.is_file():
        pytest.fail(f"{LIBRARY} is missing; build it with cmake --preset release && cmake --build --preset release")
    return doctor("--library", LIBRARY, "--", *command, **options)


def build(folder: Path, source: str, *flags: str, compiler: str = "gcc", name: str = "program") -> Path:
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler} here")
    path, output = folder / f"{name}.c", folder / name
    path.write_text(source)
    done = subprocess.run([compiler, str(path), "-o", str(output), *flags], capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        pytest.skip(f"{compiler} {' '.join(flags)} does not work here: {done.stderr.strip().splitlines()[-1]}")
    return output


USUAL = "#include <stdlib.h>\nint main(void) { void* volatile p = malloc(10); free(p); return 0; }\n"
OWN = (
    "#include <stddef.h>\nstatic char room[1 << 20]; static size_t used;\n"
    "void* malloc(size_t n) { void* p = room + used; used += (n + 15) / 16 * 16; return p; }\n"
    "void free(void* p) { (void)p; }\nvoid* calloc(size_t n, size_t m) { return malloc(n * m); }\n"
    "void* realloc(void* p, size_t n) { (void)p; return malloc(n); }\n"
)
WAITS = (
    '#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\nint main(void) { free(malloc(10)); puts("up"); fflush(stdout);'
    " for (;;) pause(); }\n"
)
