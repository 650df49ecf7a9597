"""What `numalloc run` tells when it stays: reports of odd programs, and reports that cannot be written."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from limits import LIMIT

COMMAND = [sys.executable, "-c", "from numalloc_tools.cli import main; main()", "run"]


def run(*words: object, **options) -> subprocess.CompletedProcess:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run([*COMMAND, *words], text=True, **streams, timeout=LIMIT)


@pytest.mark.full("looks within a third of a second")
def test_a_program_whose_name_is_no_text(tmp_path):
    """The kernel's files about it have these bytes in them."""
    program = os.path.join(os.fsencode(tmp_path), b"sl\xffeep")
    shutil.copy(shutil.which("sleep"), program)
    done = run("--report", "--json", tmp_path / "report", "--", program, "0.3")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "report").read_text())[0]["looks"] >= 2


def test_an_unwritable_report_is_reported_before_anything_runs(tmp_path):
    done = run("--report", "--json", tmp_path / "nowhere/report", "--", "echo", "ran")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "--json" in done.stderr and "accepted: a writable file" in done.stderr


def test_status_is_the_programs_even_if_nobody_reads_the_report():
    script = "sleep 0.1; exit 7"
    with open("/dev/full", "w") as full:
        assert run("--report", "--", "sh", "-c", script, stderr=full).returncode == 7
    done = run("--report", "--json", "/dev/full", "--", "sh", "-c", script)
    assert done.returncode == 7
    assert "--json: /dev/full cannot be written (No space left on device)" in done.stderr


@pytest.mark.full("looks within a third of a second")
@pytest.mark.skipif(os.geteuid() == 0, reason="root may look at everything")
def test_memory_that_may_not_be_inspected_is_reported(tmp_path):
    program = tmp_path / "sleep"
    shutil.copy(shutil.which("sleep"), program)
    program.chmod(0o111)
    done = run("--report", "--", program, "0.3")
    assert "the memory of programs that this user may not inspect is missing" in done.stderr
    assert "ended before" not in done.stderr


def test_logs_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "0.out").mkdir()
    done = run("--instances", "2", "--logs", tmp_path, "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"--logs: {tmp_path}/0.out cannot be written" in done.stderr


def test_a_signal_without_a_name_is_reported():
    done = run("--instances", "1", "--", "bash", "-c", "kill -40 $$")
    assert done.returncode == 168
    assert "instance 0 on node 0 was ended by signal 40" in done.stderr
