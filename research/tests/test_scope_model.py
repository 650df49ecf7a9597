"""Modelled time against sums by hand."""

import json

import pytest
from scope_counts import run

from research.scope import counts, hardware, model

PAPER = hardware.named("xeon-8x16")
EIGHT = list(range(8))


def modelled(raw: dict, machine: hardware.Hardware = PAPER) -> model.Modelled:
    return model.modelled(counts.read(raw), machine)


def cpus(*given: dict) -> dict:
    """On eight nodes, a CPU each; those not given do nothing."""
    return run(EIGHT, [*given, *[{}] * (8 - len(given))])


def on(node: int, lines: float) -> list[float]:
    return [lines if node == number else 0 for number in range(8)]


def test_instructions_alone():
    found = modelled(cpus({"instructions": 4_000}, {"instructions": 8_000}))
    assert found.seconds == pytest.approx(8_000 * 0.5 / 2.0 * 1e-9)
    assert found.longest == "cpu 1" and found.cpu_seconds[:2] == pytest.approx([1e-6, 2e-6])
    assert found.range == pytest.approx((found.seconds, found.seconds)), "no memory, nothing hangs on its latency"


def test_every_level_has_its_latency():
    found = modelled(
        cpus(
            {
                "instructions": 1e9,
                "l1_misses": 1_000,
                "l2_misses": 600,
                "llc_hits": 200,
                "fills": [100, 40, 0, 0, 0, 20, 0, 0],
                "transfers": [10, 5, 0, 0, 0, 0, 0, 0],
                "causes": {"upgrade": 3},
                "tlb": {"l1_misses": 50, "l2_misses": 20, "walk_lines_local": 7, "walk_lines_remote": 2},
            }
        )
    )
    parts = {name: 1e9 * value for name, value in found.parts.items()}
    assert parts["caches"] == pytest.approx((400 * 7 + 200 * 35) / 4)
    assert parts["local memory"] == pytest.approx(100 * 90 / 4)
    assert parts["remote memory"] == pytest.approx((40 * 189 + 20 * 279) / 4)
    given = 10 * 60 + 5 * 189
    assert parts["other caches"] == pytest.approx((given + 3 * given / 15) / 1.5)
    afar = (4 * 189 + 3 * 279) / 7
    assert parts["TLB"] == pytest.approx(30 * 4.5 + (7 * 90 + 2 * afar) / 4 + 9 * 7 * 3 / 4)
    assert found.seconds == pytest.approx(sum(found.parts.values()))


def test_memory_that_is_always_local_or_always_remote():
    local, remote = (modelled(cpus({"instructions": 1e6, "fills": on(node, 1e4)})) for node in (0, 5))
    assert local.parts["remote memory"] == 0 and remote.parts["local memory"] == 0
    assert remote.parts["remote memory"] / local.parts["local memory"] == pytest.approx(3.1)


def test_a_busy_memory_answers_later():
    """Eight CPUs read node 0: the time is the one at which load and waiting agree."""
    raw = run(EIGHT, [{"instructions": 1e6, "fills": on(0, 1e6)}] * 8)
    found = modelled(raw)
    time = found.seconds * 1e9
    load = 8 * 1e6 * 64 / (128 * time)
    assert found.memory_load[0] == pytest.approx(load, rel=1e-6) and load < 1
    assert found.memory_load[1:] == pytest.approx([0] * 7)
    # The slowest are two hops away; each of the three links into node 0's package has its load too.
    assert found.longest in ("cpu 5", "cpu 6", "cpu 7")
    far = 1e6 * (279 + 90 / 9 * load / (1 - load)) / 4 + 1e6 * 0.25
    assert time > far, "the links cost something as well"
    on_link = found.link_load[(0, 1)]
    # 1's own, and half of what goes to 5: the other way to 5 is by 4.
    assert on_link == pytest.approx(1.5e6 * 64 / (20.8 * time), rel=1e-6)


def test_no_run_is_shorter_than_its_bandwidth_allows():
    one = modelled(run(EIGHT, [{"instructions": 1, "fills": on(number, 1e6)} for number in EIGHT]))
    narrow = hardware.named("xeon-8x16")
    narrow = type(narrow)(**{**{name: getattr(narrow, name) for name in narrow.as_json() if name != "nodes"}, "memory_per_package": 0.5})
    slow = modelled(run(EIGHT, [{"instructions": 1, "fills": on(number, 1e6)} for number in EIGHT]), narrow)
    assert slow.seconds > 1e6 * 64 / 0.5 * 1e-9 > one.seconds
    assert max(slow.memory_load) < 1


def test_at_half_load_a_ninth_and_at_nine_tenths_the_whole_latency_is_waited():
    def waited(load: float) -> float:
        """Of one CPU that reads its own node: lines so many that the load comes out."""
        machine = PAPER.with_memory_times(1)
        lines = 1e6
        # time = instructions + lines x (90 + wait) / 4, and load = lines x 64 / (128 x time): choose the instructions.
        time = lines * 64 / (128 * load)
        machine = type(machine)(**{**{n: getattr(machine, n) for n in machine.as_json() if n != "nodes"}, "parallelism": 1000.0})
        rest = time - lines * (90 + 10 * load / (1 - load)) / 1000
        found = modelled(cpus({"instructions": rest / 0.25, "fills": on(0, lines)}), machine)
        assert found.memory_load[0] == pytest.approx(load, rel=1e-6)
        return found.parts["waiting"] / found.parts["local memory"]

    assert waited(0.5) == pytest.approx(1 / 9, rel=1e-4)
    assert waited(0.9) == pytest.approx(1, rel=1e-4)


def test_half_and_twice_the_latency_bracket_the_time():
    found = modelled(cpus({"instructions": 4_000, "fills": on(7, 100), "transfers": on(1, 10)}))
    low, high = found.range
    memory = 100 * 279 / 4 + 10 * 189 / 1.5
    assert low < found.seconds < high
    assert (low - 1e-6) * 1e9 == pytest.approx(memory / 2, rel=0.02)
    assert (high - 1e-6) * 1e9 == pytest.approx(memory * 2, rel=0.02)


def test_a_thread_that_moved_about_may_take_longer_than_any_cpu():
    raw = run([0, 1], [{"instructions": 500}, {"instructions": 700}], [{"node_of_most": 1, "instructions": 1_200}])
    found = modelled(raw, hardware.named("xeon-2x20"))
    assert found.longest == "thread 0" and found.seconds == pytest.approx(1_200 * 0.25e-9)


def test_a_thread_is_charged_for_what_was_remote_when_it_was():
    """It read its own node's memory on both nodes: as a thread of either, half would look remote."""
    moved = {"node_of_most": 0, "instructions": 8e4, "fills": [500, 500]}
    cpus = [{"instructions": 4e4, "fills": [500, 0]}, {"instructions": 4e4, "fills": [0, 500]}]
    rows = counts.read(run([0, 1], cpus, [moved | {"remote_fills": 0, "remote_transfers": 0}])).threads
    assert rows.fills.tolist() == [[1000, 0]]
    assert counts.read(run([0, 1], cpus, [moved | {"remote_fills": 100}])).threads.fills.tolist() == [[900, 100]]
    lost = moved | {"fills": [1000, 0], "remote_fills": 100}
    assert counts.read(run([0, 1], cpus, [lost])).threads.fills.tolist() == [[900, 100]]


def test_what_is_written_back_is_load_too():
    quiet = modelled(cpus({"instructions": 1e6, "fills": on(0, 1e6)}))
    raw = cpus({"instructions": 1e6, "fills": on(0, 1e6), "writebacks": on(0, 1e6)})
    assert modelled(raw).seconds > quiet.seconds
    assert modelled(raw).memory_load[0] > 1.9 * quiet.memory_load[0]


def test_nothing_at_all_takes_no_time():
    found = modelled(cpus())
    assert found.seconds == 0 and found.longest == "cpu 0" and set(found.memory_load) == {0}
    json.dumps(found.as_json())


def test_sums_of_what_was_counted():
    raw = run(
        [0, 0, 1],
        [
            {"instructions": 10, "fills": [3, 1], "transfers": [0, 2]},
            {"instructions": 20, "fills": [2, 0], "tlb": {"l2_misses": 5}},
            {"instructions": 30, "fills": [4, 0], "causes": {"false_sharing": 6}},
        ],
    )
    scope = counts.read(raw)
    assert scope.matrix.tolist() == [[5, 1], [4, 0]]
    assert (scope.fills, scope.remote_fills, scope.remote_share) == (10, 5, 0.5)
    assert (scope.transfers, scope.remote_transfers, scope.tlb_misses) == (2, 2, 5)
    assert scope.balance == pytest.approx(9 / 5) and scope.work_balance == 1
    assert scope.cause("false_sharing") == 6
    with pytest.raises(ValueError, match="counts of version 3"):
        counts.read(raw | {"version": 3})
