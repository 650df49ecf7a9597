"""scripts/flaky.sh: a repeat that failed or did not run is never lost."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import flaky
import surroundings

AROUND = SimpleNamespace(environment=lambda online, full: {"PATH": os.environ["PATH"]}, around=lambda online: [])
CASE = '<testsuite><testcase file="a.py" name="a">{}</testcase></testsuite>'
GOOD, BAD, SKIPPED = (CASE.format(part) for part in ("", '<failure message="no"/>', '<skipped message="why"/>'))


class Pretended(flaky.Run):
    """Writes this JUnit file; every second one is the second copy's."""

    def command(self, junit, order):
        text = self.tests[order % 2]
        return ["sh", "-c", 'printf %s "$0" >"$1"; exit $2', text, str(junit), "1" if text == BAD else "0"]


@pytest.mark.parametrize(
    ("first", "second", "condition", "failed"),
    [
        (GOOD, GOOD, "a second copy", []),
        (GOOD, BAD, "undisturbed", []),
        (GOOD, BAD, "a second copy", ["a.py::a"]),
        (BAD, GOOD, "a second copy", ["a.py::a"]),
        (SKIPPED, GOOD, "undisturbed", ["a.py::a (skipped)"]),
    ],
    ids=["good", "one copy", "the second fails", "the first fails", "skipped"],
)
def test_each_copy_and_each_skip_counts(tmp_path, first, second, condition, failed):
    assert flaky.once(Pretended((first, second)), condition, AROUND, 3, tmp_path, set()) == failed


def test_a_changed_file_that_git_does_not_know_yet_is_touched(tmp_path, monkeypatch):
    monkeypatch.setattr(flaky, "ROOT", tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q"], check=True, timeout=60)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "none"], check=True, timeout=60)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_new.py").touch()
    assert flaky.touched("HEAD") == ["tests/test_new.py"]


def test_of_a_file_the_tests_of_the_gate_run(tmp_path, monkeypatch):
    monkeypatch.setattr(flaky, "ROOT", tmp_path)
    monkeypatch.setattr(flaky, "PYTHON", sys.executable)
    for name in ("conftest.py", "pytest.ini"):
        shutil.copy(surroundings.ROOT / name, tmp_path)
    (tmp_path / "test_it.py").write_text("import pytest\ndef test_a(): pass\n@pytest.mark.full('time')\ndef test_b(): pass\n")
    assert flaky.collected(["test_it.py"]) == ("test_it.py::test_a",)
    assert flaky.collected(["test_it.py::test_b"]) == ("test_it.py::test_b",)


def test_the_order_is_any():
    run = flaky.Run(("a.py::a", "a.py::b", "a.py::c"))
    assert len({tuple(run.command(Path("junit.xml"), order)[-3:]) for order in range(60)}) == 6
