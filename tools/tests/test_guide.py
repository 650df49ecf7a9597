"""What docs/guide.md gives to be copied, as far as something here can judge it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from limits import LIMIT

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from numalloc_tools.cli import main; main()", "run"]


def block(language: str) -> str:
    return re.search(rf"^```{language}\n(.*?)^```$", (ROOT / "docs/guide.md").read_text(), re.DOTALL | re.MULTILINE)[1]


@pytest.mark.full("needs systemd")
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs the Debian package systemd")
@pytest.mark.skipif(not shutil.which("redis-server"), reason="needs the Debian package redis-server")
def test_unit_is_one_that_systemd_takes(tmp_path):
    """It ends with 0 after most faults, too, and only writes of them."""
    unit = tmp_path / "redis-numalloc.service"
    unit.write_text(block("ini"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=LIMIT)
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, said) == (0, []), done.stderr


def test_options_of_the_unit_are_ours():
    lines = re.findall(r"^Environment=(.*)$", block("ini"), re.MULTILINE)
    told = dict(word.split("=", 1) for line in lines for word in line.split())
    assert told.pop("LD_PRELOAD").endswith("/libnumalloc.so") and told
    done = subprocess.run([*COMMAND, "--show", "--", "true"], env=os.environ | told, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
