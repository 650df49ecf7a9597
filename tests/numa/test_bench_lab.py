"""`numalloc bench --lab`: programs count their pages in a virtual machine, and the results can be drawn."""

import subprocess
import sys
from pathlib import Path

from numalloc_tools.bench.results import Summary, read

NUMALLOC = [sys.executable, "-c", "from numalloc_tools.cli import main; main()"]


def test_pages_are_counted_and_drawn(library, tmp_path):
    output = tmp_path / "lab.json"
    words = ["bench", "--lab", "--nodes", "4", "--memory-per-node", "512M", "--only", "threadtest,perl", "--rounds", "1"]
    words += ["--allocators", "numalloc,glibc,glibc+binding", "--library", library, "--json", str(output)]
    done = subprocess.run([*NUMALLOC, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = read(output)
    assert results.complete and results.settings["lab"]["nodes"] == 4
    assert sorted(results.cases) == ["lab:perl/1", "lab:threadtest/8"]
    summary = Summary(results, "glibc")
    ours = summary.cell("lab:threadtest/8", "numalloc", "remote_percent")
    assert (ours.status, ours.value) == ("ok", 0.0)
    assert 25 <= summary.cell("lab:threadtest/8", "numalloc", "fullest_percent").value < 40, "pages lie on all four nodes"
    assert summary.cell("lab:threadtest/8", "glibc+binding", "remote_percent").value < 5
    assert summary.cell("lab:perl/1", "glibc").status == "missing", "real programs say that they stay outside"
    drawn = subprocess.run([*NUMALLOC, "bench", "report", str(output)], cwd=tmp_path, capture_output=True, text=True)
    assert drawn.returncode == 0, drawn.stderr
    folder = tmp_path / "numalloc-bench-report"
    assert {path.name for path in Path(folder).iterdir()} == {"index.html", "results.md", "remote-pages.svg", "spread.svg"}
    assert "| lab:threadtest/8 | 0.0 |" in (folder / "results.md").read_text()


def test_debians_programs_run_there_too(library, tmp_path):
    output = tmp_path / "lab.json"
    words = ["bench", "--lab", "--nodes", "2", "--memory-per-node", "512M", "--only", "redis,memcached,sqlite", "--rounds", "1"]
    words += ["--allocators", "numalloc,glibc+binding", "--library", library, "--json", str(output)]
    done = subprocess.run([*NUMALLOC, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    results = read(output)
    assert results.complete and sorted(results.cases) == ["lab:memcached/4", "lab:redis/4", "lab:sqlite/4"]
    summary = Summary(results, "glibc+binding")
    for case in results.cases:
        for allocator in ("numalloc", "glibc+binding"):
            cell = summary.cell(case, allocator, "remote_percent")
            # What glibc's arenas share between the nodes is a matter of luck: 0 % to 14 % were seen. memcached has more
            # threads than this machine has CPUs, and those beyond are not bound: 0 % to 11 % were seen.
            most = 50 if allocator != "numalloc" else 25 if "memcached" in case else 1
            assert cell.status == "ok" and cell.value < most, f"{case} under {allocator}: {cell}"
    spread = summary.cell("lab:memcached/4", "numalloc", "fullest_percent").value
    assert 50 <= spread < 95, "its four threads are on both nodes"
