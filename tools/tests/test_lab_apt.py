"""Package lists that another apt is refreshing while the lab asks for a package, and which package it asks for."""

import fcntl
import os
import platform
import threading
import time

import pytest
from limits import LIMIT
from numalloc_tools import cache
from numalloc_tools.guest import apt, kernel, packages
from numalloc_tools.guest.architecture import named
from numalloc_tools.problem import Problem


@pytest.fixture
def lists(tmp_path, monkeypatch):
    """A folder of lists, and an apt-cache that knows the package once its list is there."""
    folder = tmp_path / "lists"
    folder.mkdir()
    (folder / "lock").touch()
    (tmp_path / "bin").mkdir()
    for name, text in (
        ("apt-config", f"echo \"lists='{folder}'\""),
        ("apt-cache", f"echo >> {tmp_path}/asked; test -e {folder}/main && echo ' Depends: linux-image-1'"),
    ):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(apt, "_PAUSE", 0.05)
    return folder


def times_asked(lists) -> int:
    return len((lists.parent / "asked").read_text().splitlines())


def test_lists_under_a_lock_are_waited_for(lists):
    with open(lists / "lock", "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)

        def other_apt():
            while not (lists.parent / "asked").exists() or times_asked(lists) < 3:
                time.sleep(0.01)
            (lists / "main").touch()

        refresh = threading.Thread(target=other_apt, daemon=True)
        refresh.start()
        assert packages.real_package("linux-image", "linux-image-") == "linux-image-1"
        refresh.join(LIMIT)


def test_lists_that_changed_under_the_question_are_asked_again(lists):
    # The refresh ended while apt-cache was reading: the lock is free again, and the answer is still of the old lists.
    (lists.parent / "bin/apt-cache").write_text(
        f"#!/bin/sh\nif test -e {lists}/main; then echo ' Depends: linux-image-1'; else touch {lists}/main; exit 100; fi\n"
    )
    assert packages.real_package("linux-image", "linux-image-") == "linux-image-1"


def test_lists_at_rest_are_asked_once(lists):
    with pytest.raises(Problem, match="knows no package linux-image"):
        packages.real_package("linux-image", "linux-image-")
    assert times_asked(lists) == 1


def test_patience_ends(lists, monkeypatch):
    monkeypatch.setattr(apt, "PATIENCE", 0.3)
    with open(lists / "lock", "w") as lock, pytest.raises(Problem, match="knows no package linux-image"):
        fcntl.lockf(lock, fcntl.LOCK_EX)
        packages.real_package("linux-image", "linux-image-")


DEBIAN, UBUNTU = {"ID": "debian"}, {"ID": "ubuntu", "ID_LIKE": "debian"}
LIKE_UBUNTU = {"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}


@pytest.mark.parametrize("release, ubuntu", [(DEBIAN, False), (UBUNTU, True), (LIKE_UBUNTU, True)])
def test_the_kernel_is_the_distributions(release, ubuntu, monkeypatch, tmp_path):
    of_debian = named("").kernels["4K"]
    package = "linux-image-6.8.0-31-generic" if ubuntu else of_debian.replace("image-", "image-6.1.0-56-")
    asked = []

    def unpacked(name, _):
        folder = cache.directory("packages") / name
        (folder / "boot").mkdir(parents=True)
        (folder / "boot/vmlinuz-1").write_bytes(b"\0" * 0x1F1 + b"\1" + b"\0" * 0x10 + b"HdrS" + b"\0" * 1024)
        return folder

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)
    monkeypatch.setattr(packages, "real_package", lambda name, *_: asked.append(name) or package)
    monkeypatch.setattr(packages, "unpacked", unpacked)
    fetched = kernel.image()
    assert asked == ["linux-image-virtual" if ubuntu else of_debian]
    assert kernel.kept() == fetched == cache.directory("packages") / package / "boot/vmlinuz-1"
