"""Where the tools find the library: built here, in the wheel, on the loader's path, under the prefix."""

import os

import pytest
from numalloc_tools import preload
from numalloc_tools.problem import Problem


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No build folder around, no package with a library, and a prefix without one."""
    away = tmp_path / "away"
    away.mkdir()
    monkeypatch.chdir(away)
    monkeypatch.setattr(preload, "_PACKAGE", tmp_path / "site/numalloc_tools")
    monkeypatch.setattr(preload.sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    if any((folder / name).exists() for folder in preload._folders() for name in preload._NAMES):
        pytest.skip("the library is installed on this machine")
    return tmp_path


def made(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF")
    return path


def test_missing_library_is_one_line(nowhere):
    with pytest.raises(Problem, match="--library: numalloc is neither built here nor installed; build it with .* or give its path"):
        preload.our_library(None)


@pytest.mark.parametrize("place", ["prefix/lib/libnumalloc.so", "prefix/lib64/libnumalloc.so.0", "site/numalloc_tools/lib/libnumalloc.so"])
def test_installed(nowhere, place):
    path = made(nowhere / place)
    assert preload.our_library(None) == path


def test_the_loaders_path(nowhere, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", f":{nowhere}/empty:{nowhere}/libraries")
    path = made(nowhere / "libraries/libnumalloc.so")
    assert preload.our_library(None) == path


def test_order_of_the_places(nowhere, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nowhere / "libraries"))
    for place in (
        "prefix/lib/libnumalloc.so",
        "libraries/libnumalloc.so",
        "site/numalloc_tools/lib/libnumalloc.so",
        "away/build/release/libnumalloc.so",
    ):
        path = made(nowhere / place)
        assert preload.our_library(None) == path, f"{place} comes before those that were there"


def test_a_link_leads_to_the_file(nowhere):
    real = made(nowhere / "prefix/lib/libnumalloc.so.0.1.0")
    os.symlink(real.name, real.with_name("libnumalloc.so.0"))
    assert preload.our_library(None) == real
