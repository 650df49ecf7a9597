"""The parts of `numalloc bench` that need no program to run: sums, the schedule with a made-up clock, tables of options."""

import json
import math
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools import allocators, programs
from numalloc_tools.allocators import Allocator, ablations, crates
from numalloc_tools.bench import lab_run, schedule
from numalloc_tools.bench.report.markdown import markdown
from numalloc_tools.bench.results import MEMORY, Results, Run, Summary, merged, read
from numalloc_tools.launch.launcher import Ended
from numalloc_tools.problem import Problem
from numalloc_tools.programs import OWN, Case, Program, judged


def results(*rows, names=("glibc", "numalloc")) -> Results:
    """Rows: program, allocator, round, seconds or a status."""
    runs = [
        Run(program, 1, allocator, number, "ok", "", {"seconds": value, "peak_bytes": value * 100})
        if isinstance(value, float)
        else Run(program, 1, allocator, number, value, "because", {})
        for program, allocator, number, value in rows
    ]
    return Results({}, {"baseline": "glibc"}, [{"name": name} for name in names], [], runs)


def test_ratio_is_the_median_of_the_rounds_own_ratios():
    values = [(9.0, 1.0), (1.0, 2.0), (10.0, 5.0), (100.0, 300.0)]  # the first is the warm-up's
    rows = [(("a", "glibc", n, base), ("a", "numalloc", n, ours)) for n, (base, ours) in enumerate(values)]
    summary = Summary(results(*(row for pair in rows for row in pair)), "glibc")
    cell = summary.cell("a/1", "numalloc")
    assert (cell.value, cell.ratio, cell.rounds) == (5.0, 2.0, 3)
    assert cell.spread == pytest.approx((300 - 2) / 2 / 5)
    assert summary.cell("a/1", "numalloc", MEMORY).rounds == 4, "memory counts in the warm-up too"


def test_geometric_mean_covers_programs_that_all_completed():
    rows = [("a", "glibc", 1, 1.0), ("a", "numalloc", 1, 2.0), ("b", "glibc", 1, 1.0), ("b", "numalloc", 1, 8.0)]
    rows += [("c", "glibc", 1, 1.0), ("c", "numalloc", 1, "crash")]
    rows += [(name, "absent", 1, "missing") for name in "abc"]
    summary = Summary(results(*rows, names=("glibc", "numalloc", "absent")), "glibc")
    assert summary.completed_by_all() == ["a/1", "b/1"], "who runs nothing at all does not count"
    assert summary.geometric_mean("numalloc", summary.completed_by_all()) == pytest.approx(4.0)
    assert summary.cell("c/1", "numalloc").status == "crash"
    assert summary.geometric_mean("numalloc", ["a/1", "c/1"]) is None


def test_files_are_merged_as_further_rounds(tmp_path):
    first, second = results(("a", "glibc", 0, 1.0), ("a", "glibc", 1, 1.0)), results(("a", "glibc", 0, 1.0), ("a", "glibc", 1, 3.0))
    for name, one in (("1", first), ("2", second)):
        one.complete = True
        one.write(tmp_path / name)
    both = merged([read(tmp_path / "1"), read(tmp_path / "2")])
    assert [run.round for run in both.runs] == [0, 1, -1, 2]
    assert Summary(both, "glibc").cell("a/1", "glibc").value == 2.0
    assert both.complete


class Clock:
    """time.monotonic, moved by the programs."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(schedule.time, "monotonic", lambda: self.now)


def planned(clock: Clock, costs: dict[str, float], rounds: int, seconds: float | None) -> schedule.Schedule:
    def program(name: str, cost: float) -> Program:
        def run(allocator, work):
            clock.now += min(cost, work.limit)
            return Ended({"seconds": cost}) if cost <= work.limit else Ended({}, status="timeout", reason="slow")

        return Program(name, "made up", "", "", (1,), 1, OWN, run)

    cases = [Case(program(name, cost), 1) for name, cost in costs.items()]
    deadline = None if seconds is None else clock.now + seconds
    return schedule.Schedule(schedule.Plan(cases, [Allocator("glibc"), Allocator("numalloc")], rounds, deadline=deadline))


def test_rounds_are_rotated(monkeypatch):
    runs = list(planned(Clock(monkeypatch), {"a": 1.0}, 2, None))
    assert [(run.round, run.allocator) for run in runs] == [
        (0, "glibc"),
        (0, "numalloc"),
        (1, "numalloc"),
        (1, "glibc"),
        (2, "glibc"),
        (2, "numalloc"),
    ]


def test_budget_ends_with_a_whole_round(monkeypatch):
    clock = Clock(monkeypatch)
    plan = planned(clock, {"a": 2.0, "b": 3.0}, 20, 60.0)
    runs = list(plan)
    assert plan.stopped_early
    assert clock.now <= 1060.0
    assert len(runs) % 4 == 0 and len(runs) >= 16


def test_budget_holds_even_when_the_warm_up_is_too_long(monkeypatch):
    clock = Clock(monkeypatch)
    runs = list(planned(clock, dict.fromkeys("abcdef", 14.0), 5, 60.0))
    assert clock.now <= 1060.0
    assert [run.status for run in runs].count("left out") > 0
    assert len(runs) == 12, "every cell has a row"


def test_failed_runs_are_not_repeated(monkeypatch):
    runs = list(planned(Clock(monkeypatch), {"a": 500.0, "b": 1.0}, 2, None))
    assert [run.program for run in runs].count("a") == 2
    assert [run.program for run in runs].count("b") == 6


def test_time_left_is_estimated(monkeypatch):
    plan = planned(Clock(monkeypatch), {"a": 10.0}, 3, None)
    rows = iter(plan)
    for _ in range(3):
        next(rows)
    assert plan.left() == pytest.approx(6 * 10.05, rel=0.01), "the third is not yet counted"


def test_time_left_depends_on_the_remaining_programs(monkeypatch):
    plan = planned(Clock(monkeypatch), {"a": 1.0, "b": 9.0}, 1, None)
    rows = iter(plan)
    for _ in range(4):
        next(rows)
    assert plan.left() == pytest.approx(2 * 1.05 + 3 * 9.05, rel=0.01), "b once now and twice in round 1, a twice"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ('{"seconds": 1, "check": "ok"}', "ok"),
        ('{"seconds": 1, "check": "bad"}', "wrong"),
        ('{"check": "ok"}', "wrong"),
        ("done", "wrong"),
        ("", "wrong"),
        ("[]", "wrong"),
        ('{"seconds": 1}', "wrong"),
    ],
)
def test_programs_must_report_correct_data(line, status):
    assert judged(Ended({}, stdout=f"chatter\n{line}\n" if line else "")).status == status


def test_row_can_name_its_binary_and_words(tmp_path):
    library = tmp_path / "build/release/libnumalloc.so"
    (tmp_path / "bench").mkdir()
    row = {"name": "a", "family": "f", "description": "", "source": "", "threads": [1, 2], "standard_threads": 2}
    rows = [row, row | {"name": "b", "binary": "deep/b", "arguments": ["--steps", "3"]}]
    (tmp_path / "bench/programs.json").write_text(json.dumps({"programs": rows}))
    folder = str(library.parent / "bench")
    assert [one.command for one in programs.own(library)] == [(f"{folder}/a",), (f"{folder}/deep/b", "--steps", "3")]


def test_every_row_of_the_table_has_what_runs_it():
    root = Path(__file__).resolve().parents[2]
    known = programs.own(root / "build/release/libnumalloc.so")
    assert {"threadtest", "advection2d", "advection3d", "fdtd3d", "patch-sizes"} <= {one.name for one in known}
    for one in known:
        source = Path(one.command[0]).relative_to(root / "build/release/bench")
        assert any((root / "bench" / folder / f"{source}.cpp").is_file() for folder in ("", "programs", "analytics")), one.command


def test_ablations_come_from_the_table_of_options(tmp_path, monkeypatch):
    folder = tmp_path / "include/numalloc"
    folder.mkdir(parents=True)
    (folder / "options.def").write_text(
        '//   NUMALLOC_OPTION(name, Kind, default, "what it does")\n'
        'NUMALLOC_OPTION(binding, Binding, interleave,\n    "where threads run, file (see \\"x\\")")\n'
        'NUMALLOC_EXPERIMENT_OPTION(origin_aware, Flag, 1, "0 keeps foreign objects")\n'
        'NUMALLOC_EXPERIMENT_OPTION(batch, Size, 8K, "bytes in a batch")\n'
        'NUMALLOC_LIVE_OPTION(verbose, Flag, 0, "shows what it does")\n'
    )
    without = tmp_path / "build/release/libnumalloc.so"
    library = tmp_path / "build/experiments/libnumalloc.so"
    for one in (without, library):
        one.parent.mkdir(parents=True)
        one.touch()
    accepted = {"binding": ["interleave", "saturate", "file", "none"], "origin_aware": ["0", "1", "off", "on", "no", "yes"], "batch": []}
    monkeypatch.setattr(ablations, "_accepted", lambda name, one: [] if one == without else accepted[name])
    found = ablations.compared(Allocator("numalloc", (without,)))
    assert {one.libraries for one in found} == {(library,)}
    assert [one.name for one in found] == [
        "numalloc",
        "numalloc:binding=saturate",
        "numalloc:binding=none",
        "numalloc:origin_aware=0",
        "numalloc:batch=2048",
        "numalloc:batch=512",
    ]
    assert found[3].variables() == {"NUMALLOC_ORIGIN_AWARE": "0"}
    with pytest.raises(Problem, match=r"options\.def is in no include folder"):
        ablations.table(type(library)("/nowhere/libnumalloc.so"))
    library.unlink()
    with pytest.raises(Problem, match=r"cmake --preset experiments"):
        ablations.with_experiments(without)


def test_pages_of_the_lab():
    said = {"local_pages": 30, "remote_pages": 10, "pages_per_node": [30, 0, 10]}
    figures = lab_run.figures_of(said)
    assert (figures["remote_percent"], figures["fullest_percent"], figures["pages_on_2"]) == (25.0, 75.0, 10)


def test_lab_results_are_kept_apart_from_times():
    lab = Run("lab:a", 16, "glibc", 1, "ok", "", {"remote_percent": 3.0})
    all_runs = results(("a", "glibc", 1, 1.0))
    all_runs.runs.append(lab)
    assert all_runs.cases_with("seconds") == ["a/1"]
    assert all_runs.cases_with("remote_percent") == ["lab:a/16"]


def test_changed_crate_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    class Answer:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return False

        def read(self):
            return b"something else"

    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: Answer())
    with pytest.raises(crates.CannotBuild, match="has changed: its SHA-256"):
        crates.build("rpmalloc")
    assert crates.built("rpmalloc") is None


def test_no_command_loads_modules_that_few_need():
    """matplotlib takes longer to load than most commands run."""
    slow = ("matplotlib", "numpy", "urllib.request", "tarfile", "multiprocessing", "asyncio")
    code = f"import sys, numalloc_tools.cli; numalloc_tools.cli.made(); print([name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LIMIT)
    assert done.stdout.strip() == "[]"


def test_urls_of_crates():
    assert crates.RECIPES["rpmalloc"].url == "https://static.crates.io/crates/rpmalloc-sys/rpmalloc-sys-0.2.3%2Bb097fd0.crate"
    assert all(len(recipe.sha256) == 64 for recipe in crates.RECIPES.values())


def test_written_results_are_complete_json(tmp_path):
    results(("a", "glibc", 1, 1.0)).write(tmp_path / "x")
    content = json.loads((tmp_path / "x").read_text())
    assert content.keys() == {"format", "version", "complete", "seconds", "machine", "settings", "allocators", "programs", "runs"}
    assert content["runs"][0].keys() == {"program", "threads", "allocator", "round", "status", "reason", "figures"}
    assert math.isclose(content["runs"][0]["figures"]["seconds"], 1.0)


def test_merged_ratios_are_of_one_round():
    """The second file has no baseline: its times may be of a slower machine."""
    first, second = results(("a", "glibc", 0, 2.0), ("a", "numalloc", 0, 1.0)), results(("a", "numalloc", 1, 50.0))
    assert Summary(merged([first, second]), "glibc").cell("a/1", "numalloc").ratio == 0.5
    assert Summary(first, "glibc").cell("a/1", "numalloc").ratio == 0.5


def test_allocators_with_few_programs_do_not_remove_the_mean():
    rows = [(program, name, 1, 1.0) for program in "abc" for name in ("glibc", "numalloc")] + [("a", "guest", 1, 1.0)]
    summary = Summary(results(*rows, names=("glibc", "numalloc", "guest")), "glibc")
    assert summary.completed_by_all() == ["a/1", "b/1", "c/1"]
    assert summary.geometric_mean("guest", summary.completed_by_all()) is None


def test_each_program_counts_once_in_the_means_of_all():
    rows = [Run("a", threads, "glibc", 1, "ok", "", {"seconds": 1.0}) for threads in (1, 2, 4)]
    rows += [Run("b", threads, "glibc", 1, "ok", "", {"seconds": 1.0}) for threads in (1, 4)]
    programs = [{"name": "a", "standard_threads": 2}, {"name": "b", "standard_threads": 2}]
    found = Results({}, {"baseline": "glibc"}, [{"name": "glibc"}], programs, rows)
    assert found.standard_cases("seconds") == ["a/2", "b/1", "b/4"]


def test_files_of_different_scales_are_not_merged():
    first, second = results(("a", "glibc", 1, 1.0)), results(("a", "glibc", 1, 0.1))
    first.settings["scale"], second.settings["scale"] = 1.0, 0.1
    with pytest.raises(Problem, match="a/1 was run at scale 1 and at 0.1"):
        merged([first, second])
    second.settings |= {"scale": 1.0, "paper": True}
    with pytest.raises(Problem, match="a/1 was run at scale 1 and at 1 of --paper"):
        merged([first, second])


def told(*rows, names, lab=()) -> str:
    """The Markdown of these rows, which have memory too."""
    found = results(*rows, names=names)
    found.runs += lab
    found.machine = {
        "processor": "P",
        "cpus": 2,
        "memory_bytes": 4 << 30,
        "nodes": 1,
        "system": "S",
        "kernel": "6",
        "libc": "glibc 2",
        "huge_pages": "always [madvise] never",
        "load_at_start": 0.0,
    }
    found.settings |= {"started": "today", "scale": 1.0}
    found.allocators = [{"name": name, "version": "1"} for name in names]
    found.complete = True
    return markdown(Summary(found, "glibc"), [], "")


def test_markdown_names_programs_ahead_and_behind():
    names = ("glibc", "numalloc", "mimalloc", "numalloc:thp=on")
    rows = [
        (program, name, 1, value)
        for program, values in {"a": (4.0, 1.0, 2.0, 0.5), "b": (1.0, 1.5, 1.2, 1.5), "c": (1.0, 1.02, 2.0, 1.02)}.items()
        for name, value in zip(names, values, strict=True)
    ]
    text = told(*rows, ("d", "glibc", 1, 1.0), ("d", "numalloc", 1, "crash"), names=names)
    # sqrt3: (1/4 * 1.5 * 1.02) ** (1/3), beside the best of each: (1/2 * 1.5 * 1.02) ** (1/3)
    assert "| **numalloc** | **0.726** |" in text
    assert "scale 1, 1 interleaved round. " in " ".join(text.split())
    again = told(*rows, ("a", "glibc", 2, 4.0), ("a", "numalloc", 2, 1.0), names=names)
    assert "scale 1, 1 to 2 interleaved rounds of each program. " in " ".join(again.split()), "of merged files each has its own"
    words = " ".join(text.split())
    assert "takes 0.915 of the best peer's time (geometric mean over 3 pairs" in words
    assert "ahead of all in 1, within 5 % in 1 more, further behind in 1" in words
    assert max(len(line) for line in text.splitlines() if line[:1] not in "|#!") <= 99, "prose is broken into lines"
    assert "| b/1 | 1.50 | glibc |" in text
    assert "| a/1 | 4.00 s | **0.25** | 0.50 | 0.50 | mimalloc |" in text
    assert "| d/1 | 1.00 s | crash |" in text and "| crash | because | d/1 under numalloc |" in text
    assert "| `thp=on` | 0.794 | a/1 0.50 |" in text
    assert "| b/1 | 1.25 | mimalloc |" not in text, "its peak is within the bound"


def test_markdown_has_a_row_for_each_mechanism_off_in_the_lab():
    names = ("numalloc", "numalloc:binding=none")
    lab = [Run("lab:a", 16, name, 1, "ok", "", {"remote_percent": value}) for name, value in zip(names, (0.25, 24.5), strict=True)]
    lab += [Run("lab:b", 16, names[0], 1, "ok", "", {"remote_percent": 1.0}), Run("lab:b", 16, names[1], 1, "crash", "signal 11", {})]
    said = told(names=names, lab=lab)
    assert "| option | a/16 | b/16 |" in said and "| `numalloc` | 0.2 | 1.0 |" in said and "| `binding=none` | 24.5 | crash |" in said
    assert "Each mechanism off or changed" not in said and "| program/threads | numalloc |\n" in said, "nothing was timed"


def test_peers_that_take_too_long_to_build_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library = tmp_path / "libnumalloc.so"
    monkeypatch.setattr(crates, "build", lambda name, seconds: pytest.fail(f"{name} is built"))
    for one in allocators.chosen(["jemalloc-new", "jemalloc-new+binding"], library, {}, print, build_seconds=20):
        assert "numalloc bench --build" in one.missing
