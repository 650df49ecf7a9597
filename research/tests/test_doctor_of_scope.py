"""`research doctor` on what `research scope` needs: nothing is fetched, and what is missing is named with what mends it."""

import pytest
from numalloc_tools.problem import Problem

from research.scope import doctor, plugin, qemu


@pytest.fixture
def there(monkeypatch, tmp_path):
    monkeypatch.setattr(qemu, "at_hand", lambda: qemu.Emulator("/bin/echo"))
    monkeypatch.setattr(plugin, "library", lambda: tmp_path / "numascope.so")


def the_finding():
    (finding,) = doctor.check()
    assert finding.name == "scope"
    return finding


def test_all_is_there(there):
    assert the_finding().severity == "ok" and "numascope.so" in the_finding().what and not the_finding().mend


def test_an_old_emulator(there, monkeypatch):
    monkeypatch.setattr(qemu, "at_hand", lambda: None)
    found = the_finding()
    assert found.severity == "note" and "there is no QEMU 9.2 or newer" in found.what
    assert "fetches the backport by itself" in found.mend[0] and len(found.mend) == 1


def test_a_plugin_that_is_not_built(there, monkeypatch):
    def missing():
        raise Problem("build/release/numascope.so is missing; build it with cmake --preset release")

    monkeypatch.setattr(plugin, "library", missing)
    found = the_finding()
    assert "cannot count yet: build/release/numascope.so is missing" in found.what and found.mend == [
        "build it with cmake --preset release"
    ]


@pytest.mark.parametrize(
    ("said", "kept", "here"), [("version 10.0.2", False, True), ("version 7.2.22", True, True), ("version 7.2.22", False, False)]
)
def test_nothing_is_fetched(said, kept, here, monkeypatch, tmp_path):
    monkeypatch.setattr(qemu.shutil, "which", lambda name: "/usr/bin/own")
    monkeypatch.setattr(qemu, "_told", lambda program, environment: f"QEMU emulator {said}")
    monkeypatch.setattr(qemu.cache, "directory", lambda name: tmp_path)
    if kept:
        (tmp_path / "backport").mkdir()
    emulator = qemu.at_hand()
    assert (emulator is not None) == here
    if emulator:
        assert emulator.program.startswith(str(tmp_path)) == kept
