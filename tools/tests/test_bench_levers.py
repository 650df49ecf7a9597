"""`numalloc bench --lever`: every combination as a variant of each allocator, and set in the process that is measured."""

from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools.allocators import Allocator
from numalloc_tools.bench import levers
from numalloc_tools.launch import launcher
from numalloc_tools.machine.calls import HugePagesDisabled
from numalloc_tools.problem import Problem

GLIBC = Allocator("glibc")


def test_all_combinations_are_variants():
    found, _ = levers.variants([GLIBC], levers.parsed(["memory=default,first-touch", "huge_pages=default,off"]))
    assert [one.name for one in found] == [
        "glibc",
        "glibc@huge_pages=off",
        "glibc@memory=first-touch",
        "glibc@memory=first-touch,huge_pages=off",
    ]


def test_huge_pages_are_off_in_the_program_alone():
    [plain, off], _ = levers.variants([GLIBC], levers.parsed(["huge_pages=default,off"]))
    for allocator, wanted in ((plain, "1"), (off, "0")):
        ended = launcher.run(["grep", "^THP_enabled", "/proc/self/status"], allocator, LIMIT)
        if not ended.stdout:
            pytest.skip("this kernel does not tell")
        assert ended.stdout.split()[1] == wanted
    assert not HugePagesDisabled.now()


def test_unsupported_levers_give_a_reason():
    [bound], _ = levers.variants([Allocator("glibc+binding", (Path("/b.so"),))], levers.parsed(["threads=sparse"]))
    assert "binds its threads already" in bound.missing


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour=red", "'colour=red' is not understood; accepted: each of threads, memory"),
        ("memory", "is not understood"),
        ("memory=far", "'far' is unknown; accepted for memory: default, first-touch"),
        ("threads=many", "'many' is unknown; accepted for threads: default, none, sparse, dense"),
    ],
)
def test_bad_levers_are_refused(text, said):
    with pytest.raises(Problem) as refused:
        levers.parsed([text])
    assert said in str(refused.value)
