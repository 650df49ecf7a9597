"""Debian's programs in the lab, as far as no virtual machine is needed: the watcher of pages, and what a run is taken for."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools.allocators import Allocator
from numalloc_tools.bench import lab_run
from numalloc_tools.guest import batch
from numalloc_tools.programs import in_lab, real

PROGRAM = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    char *blocks[64], *small[1000];
    for (int i = 0; i < 64; i++) memset(blocks[i] = malloc(65536), 1, 65536);
    for (int i = 0; i < 1000; i++) small[i] = realloc(calloc(1, 16), 48);
    if (count > 1) {
        for (int i = 0; i < 64; i++) free(blocks[i]);
        for (int i = 0; i < 1000; i++) free(small[i]);
    }
    if (fork() == 0) return 3;
    return 0;
}
"""
GOOD = {"check": "ok", "local_pages": 8, "remote_pages": 2, "pages_per_node": [5, 5], "allocator": "/usr/lib/libx.so"}


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("watched")
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O0", folder / "program.c", "-o", folder / "program"], check=True, timeout=LIMIT)
    return folder / "program"


@pytest.mark.parametrize("words", [(), ("freed",)])
def test_the_watcher_counts_pages_of_live_blocks(program, words, tmp_path):
    """What is freed before the end was seen when most of it lived."""
    environment = {**os.environ, "LD_PRELOAD": str(in_lab.watcher()), "WATCH_PAGES_TO": str(tmp_path / "pages")}
    assert subprocess.run([program, *words], env=environment, timeout=LIMIT).returncode == 0
    said = json.loads((tmp_path / "pages").read_text())
    pages = said["local_pages"] + said["remote_pages"]
    whole = 64 * 65536 // 4096  # a look is due whenever a quarter more lives
    assert (whole * 3 // 4 if words else whole) <= pages <= whole + 160 and sum(said["pages_per_node"]) == pages
    assert said["check"] == "ok" and "libc.so" in said["allocator"]


def verdict(said: dict, status: int = 0, name: str = "x") -> tuple:
    allocator = Allocator(name, (Path("/usr/lib/libbinding.so"), Path("/usr/lib/libx.so")))
    return lab_run._verdict(batch.Result(status, f"noise\n{json.dumps(said)}", "it said why", 0), allocator)


def test_ends_of_runs_are_classified():
    assert verdict(GOOD)[0] == "ok" and verdict(GOOD)[2]["remote_percent"] == 20
    assert verdict(GOOD | {"allocator": "/usr/lib/libjemalloc.so.2"})[:2] == (
        "not loaded",
        "its malloc was that of /usr/lib/libjemalloc.so.2",
    )
    assert verdict(GOOD | {"check": "more than can be watched"})[0] == "wrong"
    assert verdict(GOOD, status=1)[:2] == ("failed", "it ended with status 1; it last said: it said why")
    assert verdict(GOOD | {"allocator": "/lib/libc.so.6"}, name="glibc+binding")[0] == "ok"
    assert verdict(GOOD, name="glibc+binding")[0] == "not loaded"


def test_a_job_has_the_files_of_its_script(tmp_path):
    """Each variable that a script uses and does not set comes from the job; only the program is preloaded into."""
    known = {one.name: one.lab for one in real.programs() if one.lab}
    assert known.keys() == {"redis", "memcached", "sqlite"}
    sources = Path(__file__).parents[2] / "bench/real"
    ours = Allocator("numalloc", (Path("/usr/lib/libx.so"),), options={"NUMALLOC_X": "1"})
    for name, lab in known.items():
        if lab.missing:
            continue
        job = lab.job("one", ours, 3, 0.5, 60, sources)
        assert job.environment["PRELOAD"] == f"{in_lab.watcher()}:/usr/lib/libx.so" and "LD_PRELOAD" not in job.environment
        assert job.environment["THREADS"] == "3" and job.environment["AMOUNT"] == str(lab.amount // 2), name
        assert subprocess.run(["sh", "-n", "-c", job.command[2]], timeout=LIMIT).returncode == 0
        assert lab.job("one", ours, 3, 1e-9, 60, sources).environment["AMOUNT"] == str(lab.least)
