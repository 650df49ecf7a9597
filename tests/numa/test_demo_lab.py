"""`numalloc demo --lab`: what a newcomer sees of many nodes."""

import json
import re
import subprocess
import sys

NUMALLOC = [sys.executable, "-c", "from numalloc_tools.cli import main; main()"]


def test_pages_of_each_allocator_are_shown_as_bars(library, tmp_path):
    words = ["demo", "--lab", "--nodes", "4", "--library", library, "--json", str(tmp_path / "pages.json")]
    done = subprocess.run([*NUMALLOC, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    bars = re.findall(r"^  (glibc|jemalloc|numalloc) +[█·]{20} +(\d+) %   ([▁-█]{4}) ", done.stdout, re.M)
    assert len(bars) in (6, 9), "jemalloc is there if Debian's is installed"
    assert all(percent == "0" and spread.strip("▆▇█") == "" for name, percent, spread in bars if name == "numalloc")
    assert int(bars[0][1]) > 30 and bars[0][0] == "glibc", "glibc's ended threads leave remote pages"
    cells = json.loads((tmp_path / "pages.json").read_text())["lab"]["cells"]
    assert len(cells) == len(bars) and all(len(cell["spread"]) == 4 for cell in cells)
