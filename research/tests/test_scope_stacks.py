"""Stacks of what comes from other nodes: unwound by a real library's tables, gathered, and written for flame graphs."""

import struct
from pathlib import Path

import pytest

from research.scope import elf, stacks

BASE = 0x7F0000000000


@pytest.fixture(scope="module")
def c_library() -> str:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return next(line.split()[-1] for line in lines if line.endswith("/libc.so.6"))


@pytest.fixture(scope="module")
def place_of(c_library):
    """Where a function of the C library begins in memory; a map of all of the file, as if in one piece."""
    text = elf._text(c_library)
    starts = {name: start for start, _, name in text.functions}
    first, _, address = next(one for one in text.segments if one[0] <= starts["malloc"] < one[0] + one[1])
    return lambda name: BASE + starts[name] - address + first


def sample(at: int, *words: int, transfer: bool = False) -> dict:
    """At the first instruction of a function, where nothing of its own is on the stack yet."""
    bottom = 0x7FFE00000000
    return {
        "at": f"{at:#x}",
        "transfer": transfer,
        "registers": [1, 2, bottom, 3, 4, 5, 6],
        "stack": struct.pack(f"<{len(words)}Q", *words).hex(),
    }


def named(c_library, samples: list[dict]) -> list[dict]:
    maps = elf.Maps(f"{BASE:x}-{BASE + 0x1000000:x} r-xp 00000000 00:00 1 {c_library}")
    return stacks.named({"lines_each": 4, "samples": samples}, maps)


def test_callers_are_found_on_the_stack(c_library, place_of):
    # malloc's caller is at the first instruction of qsort, whose own return address is the next word.
    at, called = place_of("malloc"), place_of("qsort") + 1
    found = named(c_library, [sample(at, called, 0), sample(at, called, 0, transfer=True), sample(at, called, 0), sample(called - 1, 0)])
    assert [(one["fills"], one["transfers"], len(one["frames"])) for one in found] == [(8, 4, 2), (4, 0, 1)]
    assert "malloc" in found[0]["frames"][0] and "qsort" in found[0]["frames"][1] and found[1]["frames"] == found[0]["frames"][1:]


def test_a_stack_that_goes_on_is_said_to(c_library, place_of):
    called = place_of("qsort") + 1
    assert named(c_library, [sample(place_of("malloc"), called)])[0]["frames"][-1] == stacks.CUT
    deep = named(c_library, [sample(place_of("malloc"), *[called] * 100)])[0]["frames"]
    assert len(deep) == stacks.DEEPEST + 1 and deep[-1] == stacks.CUT


def test_what_is_in_no_file_has_no_callers(c_library):
    assert [one["frames"] for one in named(c_library, [sample(0x1000, 5)])] == [[elf.UNKNOWN]]


def test_flame_graphs_have_the_run_below(tmp_path):
    lines = stacks.folded([("glibc/4", [{"frames": ["take(a;b)", "main"], "fills": 3, "transfers": 4}]), ("numalloc", [])])
    assert lines == "glibc/4;main;take(a:b) 7\n"
