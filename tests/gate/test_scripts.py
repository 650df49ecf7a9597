"""scripts/test.sh, before the first stage."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 300  # seconds


def test_an_interrupt_reaches_what_runs_quietly(tmp_path):
    """As a terminal sends it, to all of the foreground; apt ends in its own time, and the script after it."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "build").mkdir()
    shutil.copy(ROOT / "scripts/common.sh", tmp_path / "scripts")
    apt = "trap 'sleep 1; echo ended; exit 1' INT; echo started >begun; while :; do sleep 0.1; done"
    (tmp_path / "scripts/apt.sh").write_text(apt)
    (tmp_path / "scripts/test.sh").write_text('. "$(dirname -- "$0")/common.sh"\nquietly apt tried sh scripts/apt.sh\n')
    process = subprocess.Popen(["sh", "scripts/test.sh"], cwd=tmp_path, start_new_session=True)
    until = time.monotonic() + LIMIT
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(LIMIT) == 130
    assert (tmp_path / "build/apt.log").read_text() == "ended\n"


@pytest.mark.parametrize("name", ["a b", "a:b"])
def test_a_folder_that_cannot_be_preloaded_from_is_refused(tmp_path, name):
    """LD_PRELOAD takes blanks and colons for the ends of names."""
    shutil.copytree(ROOT / "scripts", tmp_path / name / "scripts")
    done = subprocess.run(["sh", str(tmp_path / name / "scripts/test.sh")], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2 and "LD_PRELOAD" in done.stderr


def test_each_set_of_packages_is_installed_once(tmp_path):
    for folder in ("scripts", "tools", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "scripts/common.sh", tmp_path / "scripts")
    (tmp_path / "tools/pyproject.toml").write_text("one")
    (tmp_path / ".venv/bin/python").write_text('#!/bin/sh\nshift 2\n[ "$1" != install ] || echo "$5" >>installed\n')
    (tmp_path / ".venv/bin/python").chmod(0o755)
    (tmp_path / "scripts/install.sh").write_text('. "$(dirname -- "$0")/common.sh"\nmake_venv "$1"\n')

    def installed(*extras: str) -> list[str]:
        for extra in extras:
            subprocess.run(["sh", "scripts/install.sh", extra], cwd=tmp_path, timeout=LIMIT, check=True)
        return (tmp_path / "installed").read_text().split()

    assert installed("[docs]", "[docs]", "[test]", "[test]", "[docs]", "") == ["tools[docs]", "tools[test]"]
    (tmp_path / "tools/pyproject.toml").write_text("two")
    assert installed("", "", "[docs]")[2:] == ["tools", "tools[docs]"]
