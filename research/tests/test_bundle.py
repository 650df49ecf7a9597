"""`research bundle` and `read-bundle`: what is packed runs elsewhere by its own script; results come back."""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools.bench.results import Results, Run

from research.paper import table

ROOT = Path(__file__).resolve().parents[2]


def research(*words, folder) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, ROOT / "research", *words], cwd=folder, capture_output=True, text=True, timeout=LIMIT)


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A working tree with one program and libraries that change nothing."""
    compiler = shutil.which("cc") or pytest.skip("no compiler here")
    folder = tmp_path_factory.mktemp("tree")
    (folder / "build/release/bench").mkdir(parents=True)
    for name in ("libnumalloc.so", "libnumalloc-binding.so"):
        output = folder / "build/release" / name
        subprocess.run(
            [compiler, "-x", "c", "-", "-shared", "-fPIC", "-o", output], input="int changes_nothing;", text=True, check=True, timeout=LIMIT
        )
    subprocess.run(
        [compiler, "-x", "c", "-", "-o", folder / "build/release/bench/one"],
        input="int main(void) { return 0; }",
        text=True,
        check=True,
        timeout=LIMIT,
    )
    (folder / "build/release/bench/libleft_out.so").write_bytes(b"\x7fELF")
    (folder / "bench").mkdir()
    row = {"name": "one", "family": "f", "description": "d", "source": "s", "threads": [1], "standard_threads": 1}
    (folder / "bench/programs.json").write_text(json.dumps({"programs": [row]}))
    shutil.copytree(ROOT / "bench/real", folder / "bench/real")
    shutil.copytree(ROOT / "include", folder / "include")
    (folder / "tools/src").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / "tools" / name, folder / "tools")
    (folder / "tools/src/link").symlink_to(folder / "bench/programs.json")
    (folder / "research").mkdir()
    shutil.copy(ROOT / "research/__main__.py", folder / "research")
    return folder


@pytest.mark.parametrize("ending", ["tar.gz", "tar.zst"])
def test_bundle_has_what_its_script_needs(tree, tmp_path, ending):
    if ending == "tar.zst" and not shutil.which("zstd"):
        pytest.skip("zstd is not installed")
    done = research("bundle", tmp_path / f"b.{ending}", "--library", "build/release/libnumalloc.so", folder=tree)
    assert done.returncode == 0, done.stderr
    subprocess.run(["tar", "xf", f"b.{ending}"], cwd=tmp_path, check=True, timeout=LIMIT)
    top = tmp_path / "numalloc-bundle"
    there = {path.relative_to(top).as_posix() for path in top.rglob("*") if path.is_file()}
    assert there >= {
        "run.sh",
        "README.txt",
        "bundle.json",
        "build/release/libnumalloc.so",
        "build/release/libnumalloc-binding.so",
        "build/release/bench/one",
        "bench/programs.json",
        "bench/real/applications.toml",
        "include/numalloc/options.def",
        "research/__main__.py",
    }
    assert "build/release/bench/libleft_out.so" not in there
    assert not (top / "tools/src/link").is_symlink() and (top / "tools/src/link").read_text()
    sums = dict(reversed(line.split("  ")) for line in (top / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == there - {"SHA256SUMS"}
    assert all(hashlib.sha256((top / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())
    (top / "bench/programs.json").write_text("{}")
    assert subprocess.run(["sh", top / "run.sh"], capture_output=True, timeout=LIMIT).returncode != 0, (
        "what was changed on the way is not run"
    )
    assert not (top / ".venv").exists()


@pytest.fixture
def results(tmp_path) -> Path:
    folder = tmp_path / "results"
    (folder / "runs").mkdir(parents=True)
    runs = [Run("a", 2, name, 1, "ok", "", {"seconds": value}) for name, value in (("glibc", 2.0), ("numalloc", 1.0))]
    Results({}, {}, [{"name": "glibc"}, {"name": "numalloc", "version": "abc1234"}], [], runs).write(folder / "runs/hoard.json")
    facts = {"processor": "Large", "cpus": 128, "nodes": 8, "kernel": "6.1", "system": "Debian"}
    [one] = table.selected(table.load()[1], ["004-hoard"])
    kept = [{"id": one.id, "runs": list(one.runs), "troubles": []}]
    (folder / "papers.json").write_text(json.dumps({"machine": facts, "scale": None, "paper": False, "experiments": kept}))
    return folder


def test_results_come_back(results, tmp_path):
    with tarfile.open(tmp_path / "results.tar.gz", "w:gz") as tar:
        tar.add(results, "results")
    done = research("read-bundle", "results.tar.gz", "--output", "back", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "back/results/papers.md").read_text()
    assert "Large, 128 CPUs, 8 memory nodes" in text and "numalloc of abc1234" in text
    assert "| a/2 | 1 | 0.5 |" in text and "one node" not in text
    assert (tmp_path / "back/results/004-hoard.svg").is_file()


def test_what_is_no_result_is_refused(results, tmp_path):
    (tmp_path / "text.tar.gz").write_text("text")
    with tarfile.open(tmp_path / "outside.tar.gz", "w:gz") as tar:
        entry = tarfile.TarInfo("../outside")
        entry.size = 4
        tar.addfile(entry, io.BytesIO(b"text"))
    (tmp_path / "empty").mkdir()
    for name, said in (
        ("none", "does not exist"),
        ("text.tar.gz", "is no archive"),
        ("outside.tar.gz", "not a plain file below its folder"),
        ("empty", "papers.json cannot be read"),
    ):
        done = research("read-bundle", name, "--output", "back", folder=tmp_path)
        assert (done.returncode, said in done.stderr, done.stderr.count("\n")) == (2, True, 1), done.stderr
    assert not (tmp_path.parent / "outside").exists() and not (tmp_path / "outside").exists()


def test_bad_names_are_refused(tree, tmp_path):
    for name, said in (("b.zip", "accepted: a name that ends in .tar.gz or .tar.zst"), ("none/b.tar.gz", "does not exist")):
        done = research("bundle", name, "--library", "build/release/libnumalloc.so", folder=tree)
        assert (done.returncode, said in done.stderr) == (2, True)
