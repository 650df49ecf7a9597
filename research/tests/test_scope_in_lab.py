"""What numascope has to count: programs of which every number is known beforehand, on a machine of eight nodes;
and one machine more to see that the numbers come again."""

from pathlib import Path

import pytest
from numalloc_tools.guest import batch, programs
from numalloc_tools.guest.machine import build_machine

from research.scope import code, launch, plugin

pytestmark = pytest.mark.timeout(7200)  # seconds; a machine in the emulator, and what it counts
PROGRAMS = Path(__file__).with_name("programs")
NODES = 8
LINES = (64 << 20) // 64
ROUNDS = 2000
JOBS = {
    "local": ("walk", LINES * 64, 0, 2),
    "remote": ("walk", LINES * 64, 5, 2),
    "next": ("walk", LINES * 32, 1, 2),
    "interleaved": ("walk", LINES * 64, "interleave", 2, NODES),
    "stride-small": ("stride", LINES * 64, "never", 2),
    "stride-huge": ("stride", LINES * 64, "always", 2),
    "list": ("list", 512 << 10, 20),
    "pingpong": ("pingpong", ROUNDS),
    "one-word": ("words", ROUNDS, 0),
    "two-words": ("words", ROUNDS, 8),
    "atomics": ("atomics", ROUNDS),
    "objects": ("objects", ROUNDS),
    "returned": ("returned", ROUNDS),
    "faults": ("faults", ROUNDS),
    "child": ("child", 100_000),
}


def scoped(names, settings, nodes) -> dict[str, launch.Counted]:
    program = str(programs.built("scoped", PROGRAMS, flags=launch.MARKERS))
    jobs = [batch.Job(name, [program, *map(str, JOBS[name])], timeout=300) for name in names]
    return launch.run(build_machine(nodes, "1", "256M", "full"), jobs, settings)


@pytest.fixture(scope="module")
def marked() -> dict[str, launch.Counted]:
    return scoped(JOBS, plugin.Settings(window="markers", objects=True), NODES)


@pytest.fixture(scope="module")
def with_kernel() -> dict[str, launch.Counted]:
    return scoped(["faults", "pingpong", "child"], plugin.Settings(window="markers", kernel=True, children=True), 2)


@pytest.fixture(scope="module")
def whole_runs() -> list[dict[str, launch.Counted]]:
    """The same programs from main to exit in two machines."""
    return [scoped(["list", "local", "next"], plugin.Settings(stacks=True), 2) for _ in range(2)]


def counted(report, name) -> dict:
    assert name in report, "did not run"
    assert report[name].result.status == 0, report[name].result.stderr
    assert report[name].counts, "ran, but was not counted"
    return report[name].counts


def total(counts: dict) -> dict:
    summed: dict = {}
    for cpu in counts["cpus"]:
        code.add(summed, {key: value for key, value in cpu.items() if key != "cpu"})
    return summed


def fills_by_cpu(counts: dict) -> dict[tuple[int, int], int]:
    nodes = counts["machine"]["node_of_cpu"]
    return {(nodes[cpu["cpu"]], home): lines for cpu in counts["cpus"] for home, lines in enumerate(cpu["fills"]) if lines}


def test_walk_of_own_memory_is_local(marked):
    assert fills_by_cpu(counted(marked, "local")) == {(0, 0): 2 * LINES}


def test_walk_of_another_nodes_memory_is_remote(marked):
    assert fills_by_cpu(counted(marked, "remote")) == {(0, 5): 2 * LINES}


def test_interleaved_walk_is_seven_eighths_remote(marked):
    assert fills_by_cpu(counted(marked, "interleaved")) == {(0, home): 2 * LINES // NODES for home in range(NODES)}


def test_causes_of_a_walk(marked):
    causes = total(counted(marked, "local"))["causes"]
    assert causes == {"cold": LINES, "capacity": LINES, "true_sharing": 0, "false_sharing": 0, "upgrade": 0}


def test_small_pages_miss_the_tlb(marked):
    tlb = total(counted(marked, "stride-small"))["tlb"]
    pages = LINES // 64
    assert (tlb["l1_misses"], tlb["l2_misses"]) == (2 * pages, 2 * pages)
    walked = tlb["walk_lines_local"] + tlb["walk_lines_remote"]
    assert 2 * pages <= walked <= 2.01 * pages  # the lowest level's, and a few of the upper ones'


def test_huge_pages_fit_the_tlb(marked):
    tlb = total(counted(marked, "stride-huge"))["tlb"]
    assert (tlb["l1_misses"], tlb["l2_misses"]) == (32, 32)


def test_list_in_the_second_level_comes_from_memory_once(marked):
    found = total(counted(marked, "list"))
    lines = (512 << 10) // 64
    assert (found["l2_misses"], sum(found["fills"]), sum(found["transfers"])) == (lines, lines, 0)
    assert found["l1_misses"] > 15 * lines  # of twenty passes: it does not fit the first


def about(number, of):
    """That and a little that threads do besides: they are started, and wait for each other at the start. On a busy host a
    CPU that waits too long for its turn loses a little of what it counted."""
    return 0.99 * of <= number <= of + 300


def test_line_goes_to_and_fro(marked):
    found = total(counted(marked, "pingpong"))
    assert about(sum(found["transfers"]), 2 * ROUNDS)
    assert about(found["causes"]["true_sharing"], 2 * ROUNDS)
    assert about(found["causes"]["upgrade"], 2 * ROUNDS)
    assert found["causes"]["false_sharing"] < 100


def test_transfers_come_from_the_others_node(marked):
    counts = counted(marked, "pingpong")
    for cpu, other in ((0, NODES - 1), (NODES - 1, 0)):
        assert about(counts["cpus"][cpu]["transfers"][other], ROUNDS)


def test_words_of_one_line_are_false_sharing(marked):
    counts = counted(marked, "two-words")
    assert about(total(counts)["causes"]["false_sharing"], 2 * ROUNDS)
    worst = counts["false_sharing"][0]
    assert worst["nodes"] == [0, NODES - 1] and 1.95 * ROUNDS <= worst["times"] <= 2 * ROUNDS
    line = int(worst["line"], 16)
    assert {int(worst["first"], 16), int(worst["second"], 16)} == {line, line + 8 * 4}


def test_objects_of_one_line_are_named(marked):
    """They were given out before the window began."""
    worst = counted(marked, "objects")["false_sharing"][0]
    assert worst["times"] >= 1.95 * ROUNDS
    first, second = sorted(worst["class"], key=lambda one: one["size"])
    assert first == {"size": 20, "offset": 0, "thread": 1, "freed": False}
    assert second == {"size": 21, "offset": 8, "thread": 1, "freed": False}


def test_globals_are_no_objects(marked):
    assert counted(marked, "two-words")["false_sharing"][0]["class"] == [{"in": "scoped"}] * 2


def test_the_allocator_takes_lines_of_objects_and_of_its_own(marked):
    """Of each object that is given back the C library writes to its first line, and reads what stands before it and behind."""
    counts = counted(marked, "returned")
    on, own = (counts["allocator_data"][name] for name in ("objects", "own"))
    assert about(on["l2_misses"], ROUNDS) and about(own["l2_misses"], 2 * ROUNDS)
    for what in ("l1_misses", "l2_misses", "remote_fills", "remote_transfers"):
        assert on[what] + own[what] == counts["parties"]["allocator"][what]


def test_one_word_is_true_sharing(marked):
    causes = total(counted(marked, "one-word"))["causes"]
    assert about(causes["true_sharing"], 4 * ROUNDS) and causes["false_sharing"] < 100


def test_an_atomic_instruction_fetches_its_line_for_writing(marked):
    """Else it would be charged twice: the line, and then the leave to write. What is left is that of `turn`."""
    found = total(counted(marked, "atomics"))
    assert about(sum(found["transfers"]), 4 * ROUNDS)
    assert about(found["causes"]["upgrade"], 2 * ROUNDS)


@pytest.mark.parametrize("name", ["pingpong", "child"])
def test_code_of_others_and_of_after_the_window_is_not_counted(marked, name):
    counts = counted(marked, name)
    assert sum(party["instructions"] for party in counts["parties"].values()) == total(counts)["instructions"]


def test_code_and_threads_add_up_to_the_machine(marked):
    for name in ("local", "pingpong"):
        counts = counted(marked, name)
        found = total(counts)
        for parts in (counts["threads"], counts["parties"].values()):
            assert sum(part["l2_misses"] for part in parts) == found["l2_misses"]
        assert sum(thread["instructions"] for thread in counts["threads"]) == found["instructions"]
    by_name = {(symbol["object"], symbol["symbol"]): symbol for symbol in counts["symbols"]}
    assert about(sum(by_name["scoped", "play"]["transfers"]), 2 * ROUNDS)
    assert sorted(thread["node_of_most"] for thread in counts["threads"])[-1] == NODES - 1


def test_counts_come_again(whole_runs):
    for name in ("list", "local"):
        first, second = (total(counted(report, name)) for report in whole_runs)
        for what in ("instructions", "loads", "stores", "l1_misses"):
            assert first[what] == pytest.approx(second[what], rel=0.001), f"{name}: {what}"
        # By physical addresses: which pages disturb each other there, chance decides.
        assert first["l2_misses"] == pytest.approx(second["l2_misses"], rel=0.05), name
        assert sum(first["fills"]) == pytest.approx(sum(second["fills"]), rel=0.001)


def test_stacks_of_remote_lines(whole_runs):
    """Of two passes through another node's memory, which main has written before."""
    for report in whole_runs:
        counts = counted(report, "next")
        found = total(counts)
        remote = found["remote_fills"] + found["remote_transfers"]
        lines = {tuple(one["frames"]): one["fills"] + one["transfers"] for one in counts["stacks"]}
        assert sum(lines.values()) == pytest.approx(remote, rel=0.01)
        walked, filled = sorted(lines, key=lambda frames: -lines[frames])[:2]
        assert "memset" in filled[0] and filled[1] == "mapped" and filled[2:] == walked
        assert walked[0] == "main" and walked[-1] == "_start"
        assert lines[walked] == pytest.approx(2 * LINES / 2, rel=0.01)
        assert lines[filled] == pytest.approx(LINES / 2, rel=0.01)


def test_pages_are_cleared_by_the_kernel(with_kernel, marked):
    """Unless it is counted, the program's own stores find each page's first line absent."""
    own = counted(marked, "faults")
    assert about(total(own)["l2_misses"], ROUNDS) and "kernel" not in own["parties"]
    counts = counted(with_kernel, "faults")
    kernel, program = counts["parties"]["kernel"], counts["parties"]["program"]
    lines = ROUNDS * 4096 // 64
    assert lines <= kernel["l2_misses"] < 1.1 * lines and program["l2_misses"] < ROUNDS / 20
    assert program["instructions"] == own["parties"]["program"]["instructions"]


def test_the_kernel_is_counted_while_it_works_for_the_program(with_kernel):
    for name in ("faults", "pingpong", "child"):
        counts = counted(with_kernel, name)
        found = total(counts)
        for what in ("instructions", "l2_misses"):
            assert sum(party[what] for party in counts["parties"].values()) == found[what], name
            assert sum(thread[what] for thread in counts["threads"]) == found[what], name
    by_name = {symbol["symbol"]: symbol for symbol in counted(with_kernel, "pingpong")["symbols"]}
    assert about(sum(by_name["play"]["transfers"]), 2 * ROUNDS)


def test_what_it_forks_is_counted(with_kernel, marked):
    """The child does nothing but steps of a loop, and so does the parent after the window."""
    steps = JOBS["child"][1]
    alone, both = (counted(report, "child")["parties"]["program"] for report in (marked, with_kernel))
    assert alone["instructions"] < steps and 4 * steps <= both["instructions"] < 8 * steps
    busiest = max(thread["stores"] for thread in counted(with_kernel, "child")["threads"])
    assert busiest >= steps and len(counted(with_kernel, "child")["threads"]) == 2


def test_objects_are_not_watched_unasked(whole_runs):
    assert "allocator_data" not in counted(whole_runs[0], "list")


def test_window_from_main_to_exit_has_the_setup_in_it(whole_runs, marked):
    whole, window = (total(counted(report, "local")) for report in (whole_runs[0], marked))
    assert whole["stores"] > LINES > window["stores"]
    assert whole["instructions"] > window["instructions"]
