"""`numalloc demo --lab`: what a newcomer sees of many nodes."""

import json
import re
import subprocess
import sys

NUMALLOC = [sys.executable, "-c", "from numalloc_tools.cli import main; main()"]


def test_pages_of_both_allocators_are_shown_as_bars(library, tmp_path):
    words = ["demo", "--lab", "--nodes", "4", "--library", library, "--json", str(tmp_path / "pages.json")]
    done = subprocess.run([*NUMALLOC, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    steps = re.findall(r"^(glibc|numalloc), blocks of .*: (\d+) % of the pages are remote$", done.stdout, re.M)
    assert len(steps) == 8, "each run says that it is over, although this is no terminal"
    assert all(percent == "0" for name, percent in steps if name == "numalloc")
    assert any(int(percent) > 30 for name, percent in steps if name == "glibc"), "glibc's ended threads leave remote pages"
    assert re.search(r"glibc +█+·* +\d\d %", done.stdout) and re.search(r"numalloc +·{20} +0 % +█ [▆▇█] [▆▇█] [▆▇█]", done.stdout)
    cells = json.loads((tmp_path / "pages.json").read_text())["cells"]
    assert len(cells) == 8 and all(len(cell["spread"]) == 4 for cell in cells)


def test_a_wrong_number_of_nodes_is_one_line():
    done = subprocess.run([*NUMALLOC, "demo", "--lab", "--nodes", "1"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "numalloc: --nodes: 1 is out of range; accepted: 2 to 32\n")
