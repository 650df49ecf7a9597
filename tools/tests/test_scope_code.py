"""Whose code it was: the allocator's or the program's, by the library that an address is in."""

import shutil
from pathlib import Path

import pytest
from numalloc_tools.scope import code, elf, launch
from scope_counts import run

BASES = (0x7F0000000000, 0x7F1000000000)


@pytest.fixture(scope="module")
def c_library() -> str:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return next(line.split()[-1] for line in lines if line.endswith("/libc.so.6"))


def parties(executed: list[tuple[str, int]], preloaded: list[str]) -> dict[str, int]:
    """`executed`: files, of each an address in it. At the first ten instructions ran, at the second thirty."""
    maps = [f"{base:x}-{base + 0x1000000:x} r-xp 00000000 00:00 1 {path}" for base, (path, _) in zip(BASES, executed)]
    raw = run([0], [{"remote_fills": 0, "remote_transfers": 0}]) | {
        "code": [], "touched": [], "executed": [[base + at, count] for base, (_, at), count in zip(BASES, executed, (10, 30))],
        "maps": "\n".join(maps),
    }  # fmt: skip
    return {name: counts["instructions"] for name, counts in code.name(raw, preloaded)["parties"].items()}


def test_the_c_library_s_malloc_with_bound_threads(c_library, tmp_path):
    malloc = elf.malloc_of_c_library(c_library)[0]
    binding = str(shutil.copy(next(Path(c_library).parent.glob("libm.so.6")), tmp_path / "libnumalloc-binding.so"))
    assert parties([(c_library, malloc), (binding, 0x20000)], []) == {"program": 30, "allocator": 10}
    assert parties([(c_library, malloc), (binding, 0x20000)], [binding]) == {"program": 30, "allocator": 10}


def test_an_allocator_of_any_name_is_one(c_library, tmp_path):
    kept = shutil.copy(c_library, tmp_path / "libmine.so.1")
    (tmp_path / "libmine.so").symlink_to(kept)
    malloc = elf.malloc_of_c_library(c_library)[0]
    found = parties([(c_library, malloc), (str(kept), 0x30000)], [str(tmp_path / "libmine.so")])
    assert found == {"program": 10, "allocator": 30}, "its code is the allocator's, the C library's malloc is not used"


def test_what_the_emulator_wrote_is_found_beside_what_is_cut_short(tmp_path):
    out = tmp_path / "counts"
    assert launch._raw(out, 0) is None
    out.write_bytes(b'{"run": 0, "maps": "/tmp/caf\xe9"}\n{"run": 1, "maps": ""}\n{"run": 2, "ma')
    assert launch._raw(out, 0)["maps"] == "/tmp/caf\ufffd" and launch._raw(out, 1) == {"run": 1, "maps": ""}
    assert launch._raw(out, 2) is None
