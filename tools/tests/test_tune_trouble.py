"""`numalloc tune` where things go wrong: programs that fail by chance, disks that are full, names that are no text."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from limits import LIMIT, running_in
from numalloc_tools.problem import Problem
from numalloc_tools.tune.drive import Tuning
from numalloc_tools.tune.measure import Program, Run

NUMALLOC = [sys.executable, "-c", "from numalloc_tools.cli import main; main()"]
TWO = ["--allocators", "numalloc,glibc", "--fix", "huge-pages=default"]
STEADY = ["--metric", "rate: ([0-9]+)", "--lower"]  # of a program that always says the same number


def tune(*words, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run([*NUMALLOC, "tune", *words], cwd=cwd, capture_output=True, text=True, timeout=LIMIT)


def script(folder: Path, text: str) -> Path:
    path = folder / "program"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


@pytest.fixture
def small_disk(tmp_path):
    """A folder with room for 64 KiB."""
    libc = ctypes.CDLL(None, use_errno=True)
    folder = tmp_path / "small"
    folder.mkdir()
    if libc.mount(b"none", os.fsencode(folder), b"tmpfs", 0, b"size=64k"):
        pytest.skip("mounting a small disk takes root")
    yield folder
    libc.umount(os.fsencode(folder))


def test_a_baseline_that_fails_by_chance_is_tried_again_by_resume(tmp_path):
    program = script(tmp_path, 'echo rate: 1000\n[ -n "$LD_PRELOAD" ] && exit 0\necho ran >>calls\n[ $(wc -l <calls) -ne 4 ]\n')
    words = ["--runs", "26", *TWO, *STEADY, "--json"]
    done = tune(*words, "--", program, cwd=tmp_path)
    assert done.returncode == 1
    assert "program ended with status 1" in done.stderr
    assert "runs succeeded before: --resume numalloc-tune/runs.jsonl tries it again" in done.stderr
    done = tune(*words, "--resume", "numalloc-tune/runs.jsonl", "--", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_full_disk_costs_the_picture_not_the_result(small_disk):
    (small_disk / "fill").write_bytes(b"x" * (48 << 10))  # room for the runs
    done = tune("--runs", "26", *TWO, *STEADY, "--output", "out", "--", "echo", "rate: 1000", cwd=small_disk)
    assert done.returncode == 2, done.stderr
    assert "No significant difference" in done.stdout
    assert "--output: out/plot.png cannot be written (No space left on device)" in done.stderr
    assert sorted(path.name for path in (small_disk / "out").iterdir()) == ["runs.jsonl"]


def test_runs_that_do_not_fit_on_the_disk_end_the_search(small_disk):
    (small_disk / "fill").write_bytes(b"x" * (60 << 10))
    done = tune("--runs", "26", *TWO, *STEADY, "--output", "out", "--", "echo", "rate: 1000", cwd=small_disk)
    assert done.returncode == 2
    assert "out/runs.jsonl cannot be written (No space left on device)" in done.stderr
    (small_disk / "fill").unlink()
    done = tune("--runs", "26", *TWO, *STEADY, "--resume", "out/runs.jsonl", "--", "echo", "rate: 1000", cwd=small_disk)
    assert done.returncode == 0, done.stderr


@pytest.mark.full("asserts resident memory")
def test_a_program_whose_name_is_no_text_has_memory_and_a_picture(tmp_path):
    program = os.path.join(os.fsencode(tmp_path), b"sl\xffeep")
    shutil.copy(shutil.which("sleep"), program)
    done = tune("--runs", "26", *TWO, "--json", "--", program, "0.01", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert all(1 << 20 < row["peak_bytes"] < 20 << 20 for row in result["race"])
    assert "picture" in result["files"]


def test_memory_without_a_sample_is_no_aim():
    """Of a program that is over at once."""
    tuning = Tuning(Program(["true"]), SimpleNamespace(aims=range(2)), None, None)
    assert tuning._values(Run(0.5, peak_bytes=1 << 20)) == (0.5, 1 << 20)
    with pytest.raises(Problem, match="--memory: the program ends before its memory can be sampled; accepted:"):
        tuning._values(Run(0.5))


def test_a_container_that_forbids_to_wait_for_a_process_is_named(tmp_path):
    forbidden = [sys.executable, str(Path(__file__).with_name("forbidden.py")), "EPERM", "pidfd_open"]
    program = tmp_path / "sleep"
    program.symlink_to(shutil.which("sleep"))
    words = [*forbidden, *NUMALLOC, "tune", "--runs", "26", *TWO, "--", program, "1000"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2, done.stderr
    assert "the kernel refuses pidfd_open (EPERM); accepted: Linux 5.3" in done.stderr.splitlines()[-1]
    assert not running_in(tmp_path)


def test_allocators_without_a_name_are_refused(tmp_path):
    done = tune("--allocators", ",", "--", "true", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--allocators: ',' names none; accepted:" in done.stderr
