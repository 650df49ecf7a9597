"""Whose code it was: the allocator's or the program's, by the library that an address is in."""

import shutil
import sys
from pathlib import Path

import pytest
from numalloc_tools.guest import batch
from scope_counts import party, run

from research.scope import calls, code, elf, launch

BASES = (0x7F0000000000, 0x7F1000000000)


@pytest.fixture(scope="module")
def c_library() -> str:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return next(line.split()[-1] for line in lines if line.endswith("/libc.so.6"))


def parties(executed: list[tuple[str, int]], preloaded: list[str]) -> dict[str, int]:
    """`executed`: files, of each an address in it. At the first ten instructions ran, at the second thirty."""
    maps = [f"{base:x}-{base + 0x1000000:x} r-xp 00000000 00:00 1 {path}" for base, (path, _) in zip(BASES, executed)]
    raw = run([0], [{"remote_fills": 0, "remote_transfers": 0}]) | {
        "code": [],
        "touched": [],
        "executed": [[base + at, count] for base, (_, at), count in zip(BASES, executed, (10, 30))],
        "maps": "\n".join(maps),
        "objects": False,
    }
    return {name: counts["instructions"] for name, counts in code.name(raw, preloaded)["parties"].items()}


def test_the_c_library_s_malloc_with_bound_threads(c_library, tmp_path):
    malloc = elf.malloc_of_c_library(c_library)[0]
    binding = str(shutil.copy(next(Path(c_library).parent.glob("libm.so.6")), tmp_path / "libnumalloc-binding.so"))
    assert parties([(c_library, malloc), (binding, 0x20000)], []) == {"program": 30, "allocator": 10}
    assert parties([(c_library, malloc), (binding, 0x20000)], [binding]) == {"program": 30, "allocator": 10}


def test_the_kernel_is_a_party_where_it_is_counted():
    raw = run([0], [{"remote_fills": 0, "remote_transfers": 0}]) | {
        "code": [],
        "touched": [],
        "executed": [[0xFFFFFFFF81000000, 7]],
        "maps": "",
        "objects": False,
        "kernel": True,
    }
    found = code.name(raw, [])
    instructions = {name: counts["instructions"] for name, counts in found["parties"].items()}
    assert instructions == {"program": 0, "allocator": 0, "kernel": 7}
    assert (found["symbols"][0]["object"], found["symbols"][0]["instructions"]) == ("[kernel]", 7)


def test_an_allocator_of_any_name_is_one(c_library, tmp_path):
    kept = shutil.copy(c_library, tmp_path / "libmine.so.1")
    (tmp_path / "libmine.so").symlink_to(kept)
    malloc = elf.malloc_of_c_library(c_library)[0]
    found = parties([(c_library, malloc), (str(kept), 0x30000)], [str(tmp_path / "libmine.so")])
    assert found == {"program": 10, "allocator": 30}, "its code is the allocator's, the C library's malloc is not used"


def test_lines_of_the_allocator_s_code_are_of_objects_or_its_own(c_library):
    malloc = elf.malloc_of_c_library(c_library)[0]
    line = f"{BASES[0]:x}-{BASES[0] + 0x1000000:x} r-xp 00000000 00:00 1 {c_library}"
    heap = "555555600000-555555700000 rw-p 00000000 00:00 0 [heap]"
    at, other = f"{BASES[0] + malloc:#x}", f"{BASES[0] + 0x1000:#x}"
    lines = ((at, True, 5), (at, False, 7), (other, True, 11))
    kept = {"size": 8, "offset": 0, "thread": 1, "freed": False}
    raw = run([0], [{"remote_fills": 0, "remote_transfers": 0}]) | {
        "code": [{"at": where, "objects": of, **party(1, remote_fills=number, loads=1)} for where, of, number in lines],
        "touched": [],
        "executed": [],
        "maps": f"{heap}\n{line}",
        "objects": True,
        "false_sharing": [{"line": "0x0", "first": "0x555555600010", "second": "0x8", "class": [None, kept]}],
    }
    found = code.name(raw, [])
    assert {name: counts["remote_fills"] for name, counts in found["allocator_data"].items()} == {"objects": 5, "own": 7}
    assert found["parties"]["allocator"]["remote_fills"] == 12 and found["parties"]["program"]["remote_fills"] == 11
    assert "loads" not in found["allocator_data"]["own"], "instructions are not told apart"
    assert found["false_sharing"][0]["class"] == [{"in": "[heap]"}, kept]


def test_where_the_functions_of_an_allocator_begin(c_library, tmp_path):
    lines = [line.split() for line in calls.functions(c_library)]
    assert {"malloc", "calloc", "realloc", "aligned", "posix", "free"} <= {what for what, _, _ in lines}
    text = Path(c_library).read_bytes()
    assert all(bytes.fromhex(code) in text for _, _, code in lines)
    assert calls.functions(next(iter(Path(c_library).parent.glob("libm.so.6")))) == ()
    assert calls.functions(sys.executable + "-config") == calls.functions("/nowhere") == ()
    calls.write(tmp_path / "calls", [batch.Job("a", ["/bin/ls"]), batch.Job("b", ["/bin/ls"], {"LD_PRELOAD": "/nowhere"})])
    assert sorted((tmp_path / "calls").read_text().splitlines()) == sorted(calls.functions(c_library))


def test_what_the_emulator_wrote_is_found_beside_what_is_cut_short(tmp_path):
    out = tmp_path / "counts"
    assert launch._raw(out, 0) is None
    out.write_bytes(b'{"run": 0, "maps": "/tmp/caf\xe9"}\n{"run": 1, "maps": ""}\n{"run": 2, "ma')
    assert launch._raw(out, 0)["maps"] == "/tmp/caf\ufffd" and launch._raw(out, 1) == {"run": 1, "maps": ""}
    assert launch._raw(out, 2) is None
