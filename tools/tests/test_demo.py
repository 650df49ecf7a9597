"""`numalloc demo`: what it reads from the kernel, how it sums up, and each program once for real."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from limits import LIMIT
from numalloc_tools.demo import command
from numalloc_tools.demo.measurement import Figure, Run, summary
from numalloc_tools.machine import memory


def numalloc(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    code = "from numalloc_tools.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT
    )


def test_numa_maps_are_summed_by_node_without_files():
    text = (
        "55d0 default heap anon=300 dirty=300 N0=100 N2=200 kernelpagesize_kB=4\n"
        "7f00 bind:1 anon=512 dirty=512 N1=1 kernelpagesize_kB=2048\n"
        "7f10 default file=/lib/libc.so.6 mapped=50 N0=50 kernelpagesize_kB=4\n"
        "7f20 default\n"
    )
    assert memory.from_numa_maps(text) == {0: 100 * 4096, 1: 2 << 20, 2: 200 * 4096}


def test_resident_pages_are_found_without_numa_maps():
    """The way of kernels that have no numa_maps, tried on this very process."""
    if not os.path.exists("/proc/self/pagemap"):
        pytest.skip("no pagemap here")
    found = memory._asked(os.getpid())
    resident = memory.status(os.getpid(), "RssAnon")
    assert 0.5 * resident < sum(found.nodes.values()) < 1.5 * resident


def test_ratio_is_the_median_of_the_rounds_own_ratios():
    runs = [
        Run(name, number, [Figure("SET", value, "requests/s", "throughput")], "numa_maps")
        for number, (base, ours) in enumerate([(100, 150), (10, 15), (1000, 2000)])
        for name, value in (("glibc", base), ("numalloc", ours))
    ]
    found = summary(runs, "numalloc", "glibc", "SET")
    assert (found.median, found.least, found.most, found.ratio) == (150, 15, 2000, 1.5)
    assert summary(runs, "glibc", "glibc", "SET").ratio is None


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--program", "emacs"], "accepted: redis, python, sqlite"),
        (["--rounds", "0"], "--rounds: 0 is too few"),
        (["--requests", "1"], "--requests: 1 is too few"),
        (["--library", "/nowhere.so"], "/nowhere.so is not a file"),
        (["--library", "/bin/sh", "--allocator", "other"], "accepted: NAME=PATH"),
        (["--json", "/nowhere/result.json"], "folder of /nowhere/result.json does not exist"),
    ],
)
def test_errors_are_one_line_and_status_2(arguments, named):
    done = numalloc("demo", "--program", "python", *arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stderr.count("\n") == 1


def test_missing_program_names_its_package(tmp_path):
    done = numalloc("demo", PATH=str(tmp_path))
    assert done.returncode == 2
    assert "install the Debian package redis-" in done.stderr


@pytest.mark.full("real servers and databases, seconds each")
@pytest.mark.parametrize("program", command.PROGRAMS)
def test_program_runs(program, tmp_path):
    """With the C library itself in numalloc's place, so that this holds before anything is built."""
    needed = {"redis": "redis-server", "sqlite": "sqlite3"}.get(program)
    if needed and not shutil.which(needed):
        pytest.skip(f"no {needed} here")
    maps = open("/proc/self/maps").read().split()
    libc = next(word for word in maps if os.path.basename(word).startswith("libc.so"))
    output = tmp_path / "result.json"
    done = numalloc("demo", "--program", program, "--rounds", "1", "--requests", "200", "--library", libc, "--json", str(output))
    assert done.returncode == 0, done.stderr
    assert "settled" in done.stdout
    runs = json.loads(output.read_text())["runs"]
    assert {"glibc", "numalloc"} <= {run["allocator"] for run in runs}
    for run in runs:
        figures = run["figures"]
        assert figures["peak"]["value"] >= figures["with its data"]["value"] > 0
        assert sum(f["value"] for name, f in figures.items() if name.startswith("node ")) > 0
        assert all(f["value"] > 0 for f in figures.values() if f["unit"].endswith("/s"))


def test_crash_is_named(tmp_path):
    """A library whose malloc never works stands for an allocator that brings the program down."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no compiler here")
    source, library = tmp_path / "broken.c", tmp_path / "broken.so"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }\n")
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True, timeout=LIMIT)
    done = numalloc("demo", "--program", "python", "--rounds", "1", "--requests", "200", "--library", str(library))
    assert done.returncode == 1
    assert "was ended by SIGABRT under numalloc" in done.stderr
