"""The search of `numalloc tune` against programs whose run times are drawn from known distributions: it must name
no winner where there is none, and find the one that there is. No process is started."""

import io
import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
from numalloc_tools.launch import Setting
from numalloc_tools.tune import intervals, race, report, space
from numalloc_tools.tune.aims import Aim, scale_of
from numalloc_tools.tune.budget import Budget
from numalloc_tools.tune.records import CONFIRMATION, Answer, Records, Request
from numalloc_tools.tune.result import Result, Row
from numalloc_tools.tune.search import BaselineFailed, Search
from numalloc_tools.tune.why import Finding
from rich.console import Console

ALLOCATORS = ("numalloc", "glibc", "jemalloc", "tcmalloc", "mimalloc", "tbbmalloc")
GLIBC, OURS = Setting("glibc"), Setting()
INTERLEAVED = Setting(memory="interleave")
TIME, RATE, MEMORY = Aim("time", "s"), Aim("rate", higher=True), Aim("peak memory", "B")
SEARCHES = 300


def normal(generator: random.Random) -> float:
    return math.exp(generator.gauss(0, 0.05))


def spiky(generator: random.Random) -> float:
    """One run in twelve is disturbed by something else on the machine."""
    return math.exp(generator.gauss(0, 0.03)) * (generator.uniform(1.2, 3) if generator.random() < 1 / 12 else 1)


def searched(truth, seed, *, noise=normal, runs=100, seconds=None, nodes=1, aims=(TIME,), drift=0.0, fails=lambda setting: "") -> Search:
    """A whole search. `truth` is what a setting takes without noise: a number for each aim."""
    usual = space.usual(ALLOCATORS, nodes)
    search = Search(space.stages(usual), [GLIBC, OURS], Budget(runs, seconds), Records(list(aims)))
    search.shuffle_by(seed)
    generator = random.Random(seed)
    requests = search.runs()
    try:
        request = next(requests)
        while True:
            slower = 1 + drift * search.budget.done  # the machine slows down as it warms
            values = tuple(value * noise(generator) * slower for value in truth(request.setting))
            answer = Answer((), 1.0, reason) if (reason := fails(request.setting)) else Answer(values, values[0])
            request = requests.send(answer)
    except StopIteration:
        return search


def times(changed: dict[Setting, float]):
    return lambda setting: (changed.get(setting, 1.0),)


@pytest.mark.parametrize(
    ("aim", "ours", "expected"),
    [
        (TIME, 0.5, "0.500 (0.500 to 0.500)"),
        (TIME, 0.0, "-1 s (-1 to -1 s)"),
        (MEMORY, 0.0, "-1 MiB (-1 to -1 MiB)"),
        (RATE, 0.0, "-1 (-1 to -1)"),
    ],
)
def test_ratios_and_differences_are_told_apart(aim, ours, expected):
    unit = 2**20 if aim is MEMORY else 1
    records = Records([aim])
    for block in range(8):
        records.add(Request(OURS, CONFIRMATION, "", block), Answer((ours * unit,)))
        records.add(Request(GLIBC, CONFIRMATION, "", block), Answer((float(unit),)))
    beside = records.compared(OURS, GLIBC)
    search = SimpleNamespace(records=records, reference=GLIBC, arms=[GLIBC, OURS], level=0.95, found=SimpleNamespace(front=[]))
    search.aims, search.confirmed = range(1), lambda arm, aim: beside
    rows = [Row(GLIBC, 8, 1.0, 0, None, ""), Row(OURS, 8, ours, 0, beside, "")]
    result = Result(SimpleNamespace(search=search), rows, [], {})
    console = Console(file=io.StringIO(), width=200)
    report._show_race(console, result)
    report._show_anew(console, result)
    said = console.file.getvalue()
    kind = "ratio to glibc" if ours else "difference from glibc"
    assert f"  {kind}  " in said and f"  {aim.name}, {kind} " in said
    assert said.count(f"  {expected} ") == 2
    assert f", {kind.split()[0]} {expected}" in report._finding(Finding(aim, ours, 1.0, beside))


@pytest.mark.parametrize("nodes", [1, 8])
@pytest.mark.parametrize("noise", [normal, spiky])
def test_nothing_is_named_where_nothing_differs(noise, nodes):
    found = [searched(times({}), seed, noise=noise, nodes=nodes, drift=0.002).found.chosen for seed in range(SEARCHES)]
    named = sum(one is not None for one in found)
    assert named <= 0.05 * SEARCHES


def test_what_is_said_of_the_best_is_not_too_good():
    """The best of many owes some of what it showed in the race to luck, and none of what the new runs say."""
    raced, confirmed = [], []
    for seed in range(SEARCHES):
        search = searched(times({}), seed)
        if search.arms:
            best = search.arms[1]
            raced.append(search.records.compared(best, GLIBC, phase="race").difference)
            confirmed.append(search.confirmed(best).difference)
    assert np.mean(raced) < -0.02, "the race chose by luck"
    assert abs(np.mean(confirmed)) < 0.004


def test_nothing_is_named_with_two_aims_either():
    same = lambda setting: (1.0, 100e6)  # noqa: E731
    named = sum(searched(same, seed, aims=(TIME, MEMORY)).found.chosen is not None for seed in range(SEARCHES))
    assert named <= 0.05 * SEARCHES


def test_an_allocator_that_is_a_tenth_faster_is_found():
    truth = times({Setting("jemalloc"): 0.9})
    inherits = lambda setting: (0.9 if setting.allocator == "jemalloc" else 1.0,)  # noqa: E731
    for what in (truth, inherits):
        found = [searched(what, seed).found.chosen for seed in range(100)]
        assert sum(one is not None and one.allocator == "jemalloc" for one in found) >= 95


def test_thirty_runs_find_a_setting_that_is_a_fifth_faster():
    truth = lambda setting: (0.8 if setting.allocator == "mimalloc" else 1.0,)  # noqa: E731
    found = [searched(truth, seed, runs=30) for seed in range(100)]
    assert all(one.budget.done <= 30 for one in found)
    assert sum(one.found.chosen is not None and one.found.chosen.allocator == "mimalloc" for one in found) >= 90


def test_a_lever_of_a_late_stage_is_found():
    truth = lambda setting: (0.8 if ("purge_delay", "-1") in setting.options else 1.0,)  # noqa: E731
    found = [searched(truth, seed, runs=150).found.chosen for seed in range(100)]
    assert sum(one is not None and ("purge_delay", "-1") in one.options for one in found) >= 90


def test_interleaving_is_found_on_many_nodes_and_nothing_is_added_to_it():
    truth = lambda setting: (0.7 if setting.memory == "interleave" else 1.0,)  # noqa: E731
    found = [searched(truth, seed, runs=150, nodes=8).found.chosen for seed in range(100)]
    assert sum(one is not None and one.memory == "interleave" for one in found) >= 98
    assert sum(one is not None and one.threads == "default" and not one.options for one in found) >= 60


def test_more_is_better_where_it_is_said():
    truth = lambda setting: (130.0 if setting.allocator == "numalloc" else 100.0,)  # noqa: E731
    found = [searched(truth, seed, aims=(RATE,)).found.chosen for seed in range(40)]
    assert all(one is not None and one.allocator == "numalloc" for one in found)


def test_values_may_be_zero():
    truth = lambda setting: (0.0 if setting.memory == "interleave" else 50.0,)  # noqa: E731
    search = searched(truth, 1, nodes=8, aims=(Aim("remote pages"),))
    assert search.found.chosen.memory == "interleave"
    assert search.confirmed(search.found.chosen).ratio() == pytest.approx(-50, rel=0.1)


def test_two_aims_give_a_front():
    """One is fast and fat, one slow and lean, the rest neither."""
    known = {"tcmalloc": (0.7, 200e6), "tbbmalloc": (1.2, 40e6)}
    truth = lambda setting: known.get(setting.allocator, (1.0, 100e6))  # noqa: E731
    found = [searched(truth, seed, aims=(TIME, MEMORY)) for seed in range(40)]
    for one in found:
        assert {setting.allocator for setting in one.found.front} == {"tcmalloc", "tbbmalloc"}


def test_a_gain_below_the_least_is_not_proposed():
    quiet = lambda generator: math.exp(generator.gauss(0, 0.0002))  # noqa: E731
    search = searched(times({Setting("jemalloc"): 0.996}), 3, noise=quiet)
    assert search.found.chosen is None
    assert search.found.verdict == "too small"


def test_the_simplest_of_equals_is_chosen():
    """numalloc is faster, whatever its options are. Chance decides otherwise in one search of a hundred."""
    quiet = lambda generator: math.exp(generator.gauss(0, 0.01))  # noqa: E731
    truth = lambda setting: (0.8 if setting.allocator == "numalloc" else 1.0,)  # noqa: E731
    others = [seed for seed in range(SEARCHES) if searched(truth, seed, noise=quiet).found.chosen != OURS]
    assert len(others) <= 0.05 * SEARCHES


def test_bad_settings_fall_out_early_and_baselines_never():
    slow = lambda setting: (2.0 if setting.allocator in ("tbbmalloc", "numalloc") else 1.0,)  # noqa: E731
    search = searched(slow, 5)
    assert search.beaten[Setting("tbbmalloc")] <= 3
    race_blocks = {block for block, phase in search.records.phases.items() if phase == "race"}
    for baseline in (GLIBC, OURS):
        assert race_blocks <= search.records.values[baseline].keys()


def test_each_block_runs_each_survivor_once_in_another_order():
    search = searched(times({}), 1)
    first = [setting for setting, blocks in search.records.values.items() if 2 in blocks]
    assert sorted(setting.allocator for setting in first) == sorted(ALLOCATORS)
    orders = {tuple(setting for setting in searched(times({}), seed).records.values)[:6] for seed in range(5)}
    assert len(orders) > 1


@pytest.mark.parametrize("runs", [30, 60, 100])
def test_the_budget_is_kept(runs):
    for seed in range(20):
        assert searched(times({}), seed, runs=runs, nodes=8).budget.done <= runs


def test_a_budget_of_time_is_kept():
    for seed in range(20):
        assert searched(times({}), seed, runs=None, seconds=60.0).budget.spent <= 63


def test_a_setting_under_which_the_program_fails_falls_out():
    fails = lambda setting: "it broke" if setting.allocator == "jemalloc" else ""  # noqa: E731
    search = searched(times({Setting("jemalloc"): 0.1}), 1, fails=fails)
    assert search.fallen == {Setting("jemalloc"): "it broke"}
    assert search.found.chosen is None


def test_numalloc_may_fail_and_the_baseline_may_not():
    assert searched(times({}), 1, fails=lambda setting: "it broke" if setting == OURS else "").fallen == {OURS: "it broke"}
    with pytest.raises(BaselineFailed, match="it broke"):
        searched(times({}), 1, fails=lambda setting: "it broke" if setting == GLIBC else "")


def test_only_settings_that_the_machine_can_run_are_tried():
    names = [[stage.name for stage in space.stages(space.usual(ALLOCATORS, nodes))] for nodes in (1, 8)]
    assert names[0] == ["allocators", "huge pages", "options", "options together"]
    assert names[1] == ["allocators", "placement", "huge pages", "options", "options together"]
    assert "local" in space.usual(ALLOCATORS, 8, policy=True).memory, "where numactl has said otherwise"


def test_stages_without_room_are_reported():
    assert "options" in searched(times({}), 1, runs=30, nodes=8).skipped
    assert searched(times({}), 1, runs=600, nodes=8).skipped == []


def test_a_grid_races_combinations_at_once():
    lean = space.Space(("glibc",), threads=("default", "sparse"), memory=("default", "interleave"))
    settings = space.grid(lean)[0].vary([])
    assert len(settings) == len(set(settings)) == 4
    assert Setting("glibc", threads="sparse", memory="interleave") in settings


@pytest.mark.parametrize("noise", [lambda g: g.gauss(0, 1), lambda g: g.gauss(0, 1) ** 3, lambda g: g.choice((-1, 1))])
@pytest.mark.parametrize("count", [6, 9, 15])
def test_intervals_cover_what_they_promise(count, noise):
    generator = random.Random(count)
    covered = 0
    for _ in range(1000):
        low, high = intervals.interval([5 + noise(generator) for _ in range(count)])
        covered += low <= 5 <= high
    assert covered >= 935
    assert intervals.interval([1.0] * 5) is None, "five differences cannot tell with 95 %"


def test_a_race_calls_equals_worse_seldom():
    generator = np.random.default_rng(1)
    wrong = 0
    for _ in range(1000):
        losses = generator.normal(0, 0.05, (4, 1)) + generator.normal(0, 0.05, (4, 6))
        wrong += race.worse_than(losses).any()
    assert wrong <= 60
    losses = np.zeros((3, 4)) + np.array([0, 0, 0, 0.5])
    assert race.worse_than(losses)[0].tolist() == [False, False, False, True], "without any noise a difference is one"


def test_scales():
    time = scale_of(TIME, [1.0, 2.0])
    assert time.shown(time.loss(3.0) - time.loss(2.0)) == pytest.approx(1.5)
    rate = scale_of(RATE, [1.0, 2.0])
    assert rate.loss(2.0) < rate.loss(1.0)
    assert rate.shown(rate.loss(3.0) - rate.loss(2.0)) == pytest.approx(1.5)
    share = scale_of(TIME, [0.0, 4.0, 4.0])
    assert share.shown(share.loss(4.0) - share.loss(0.0)) == pytest.approx(4)
