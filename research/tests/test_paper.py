"""`research paper`: the table of experiments, what is run once, and tables from made-up results."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from limits import LIMIT, wait_until
from numalloc_tools.bench import manifest
from numalloc_tools.bench.results import Results, Run
from numalloc_tools.problem import Problem

from research.paper import page, runs, table, view
from research.paper.table import Call, Experiment

ROOT = Path(__file__).resolve().parents[2]
CALLS, EXPERIMENTS = table.load()


def test_every_experiment_can_be_run_and_shown():
    assert len({one.id for one in EXPERIMENTS}) == len(EXPERIMENTS)
    for one in EXPERIMENTS:
        assert one.view in table.VIEWS and one.said and one.one_node and one.source
        assert set(one.runs) <= set(CALLS), one.id
        assert bool(one.figure) == (one.view != "document"), one.id
        assert all((CALLS[name].tool == "figures") == (one.view == "document") for name in one.runs), one.id
    assert {name for one in EXPERIMENTS for name in one.runs} == set(CALLS), "each run is somebody's"
    assert all(call.tool in table.TOOLS for call in CALLS.values())


def test_programs_and_families_of_the_runs_exist():
    rows = json.loads((ROOT / "bench/programs.json").read_text())["programs"]
    brought = manifest.programs(sorted((ROOT / "bench/real").glob("*.toml")), {row["name"] for row in rows})
    known = {row[key] for row in rows for key in ("name", "family")} | {one.family for one in brought}
    for call in CALLS.values():
        words = dict(zip(call.words, call.words[1:], strict=False))
        assert set(words.get("--only", "").split(",")) - {""} <= known, call.name
        if file := words.get("--programs"):
            assert Path(file.format(real=ROOT / "bench/real")).is_file(), call.name


def test_each_kind_of_name_chooses():
    def chosen(*words):
        return [one.id for one in table.selected(EXPERIMENTS, list(words))]

    assert chosen("000-figure-5") == chosen("figure-5") == ["000-figure-5"]
    assert len(chosen("all")) == len(EXPERIMENTS)
    assert all(one.startswith("003-") for one in chosen("003"))
    assert chosen("table-4", "figure-5", "table-4") == ["003-table-4", "000-figure-5"]
    with pytest.raises(Problem, match="'figure-99' is no experiment; accepted: all, 000"):
        chosen("figure-99")


def how(tmp_path, **more) -> runs.How:
    (tmp_path / "bench/real").mkdir(parents=True, exist_ok=True)
    library = tmp_path / "build/release/libnumalloc.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    library.write_text("library")
    return runs.How(library, tmp_path / "out", 6, **more)


CALL = Call("few", "bench", ("--only", "a", "--threads", "{sweep}"))


def test_words_are_of_this_machine_and_the_callers_wishes(tmp_path):
    words = runs.words(CALL, how(tmp_path, scale=0.5, rounds=2, allocators="numalloc,glibc"))
    assert words[:5] == ["bench", "--only", "a", "--threads", "1,2,4,6"]
    assert " ".join(words).count("--rounds 2") == " ".join(words).count("--allocators numalloc,glibc") == 1
    own = runs.words(
        Call("few", "bench", ("--only", "a"), own_allocators=True, own_rounds=True), how(tmp_path, rounds=2, allocators="glibc")
    )
    assert "--rounds" not in own and "--allocators" not in own


def test_what_is_done_is_not_run_again(tmp_path, monkeypatch):
    started = []

    def pretend(words, _):
        started.append(words)
        Path(words[words.index("--json") + 1]).write_text("{}")
        return 0, ""

    monkeypatch.setattr(runs, "_ended", pretend)
    one = how(tmp_path)
    assert runs.run(CALL, one) == runs.run(CALL, one) == ""
    assert len(started) == 1
    other = how(tmp_path, scale=0.5)
    runs.run(CALL, other)
    assert len(started) == 2, "another scale is another figure"
    other.library.write_text("another library")
    runs.run(CALL, other)
    assert len(started) == 3


def test_what_fails_is_said_and_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "_ended", lambda *_: (2, "numalloc: no such thing\n"))
    assert runs.run(CALL, how(tmp_path)) == "no such thing"
    assert not runs.done(CALL, how(tmp_path))


@pytest.mark.parametrize("early", [False, True])
def test_interrupted_run_has_time_to_keep_what_it_has(tmp_path, early):
    """Early: before the caller is told that the child has started."""
    kept, started = tmp_path / "kept", tmp_path / "started"
    child = f"import pathlib, time\ntry:\n pathlib.Path({str(started)!r}).touch(); time.sleep(1000)\nfinally:\n time.sleep(1); pathlib.Path({str(kept)!r}).touch()"
    code = (
        f"import sys\nfrom pathlib import Path\nfrom research.paper import runs\nruns._ended([sys.executable, '-c', {child!r}], Path('/'))"
    )
    if early:
        popen = f"class Popen(runs.subprocess.Popen):\n def __init__(self, *words, **more):\n  super().__init__(*words, **more)\n  while not Path({str(started)!r}).exists(): pass\n  os.kill(os.getpid(), 2)\nruns.subprocess.Popen = Popen\n"
        code = "import os\n" + code.replace("runs._ended(", f"{popen}runs._ended(")
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL) as running:
        if not early:
            wait_until(started.exists)
            running.send_signal(signal.SIGINT)
        running.wait(LIMIT)
    assert kept.exists()


def results(names, *rows) -> Results:
    """Rows: program, threads, allocator, round, seconds."""
    found = [
        Run(program, threads, name, number, "ok", "", {"seconds": value, "peak": 4 * value, "asked": value})
        for program, threads, name, number, value in rows
    ]
    return Results({}, {}, [{"name": name} for name in names], [], found)


def experiment(view_, figure="seconds", **more) -> Experiment:
    return Experiment("000-test", "a test", ("few",), view_, "said", {}, "here", figure, **more)


def shown(one, content):
    return {row: {name: round(value, 6) for name, value in cells.items()} for row, cells in view.shown(one, [content])[0].rows.items()}


def test_views():
    content = results(
        ["glibc", "glibc+binding", "numalloc"],
        *[
            ("a", threads, name, number, value / threads * number)
            for threads in (1, 4)
            for number in (1, 2)
            for name, value in (("glibc", 8.0), ("glibc+binding", 4.0), ("numalloc", 2.0))
        ],
    )
    ratios = shown(experiment("ratio"), content)
    assert ratios["a/4"] == {"glibc": 1, "glibc+binding": 0.5, "numalloc": 0.25}
    assert ratios["geometric mean of 2"]["numalloc"] == 0.25
    assert shown(experiment("ratio", base="numalloc"), content)["a/1"]["glibc"] == 4
    assert list(shown(experiment("ratio", columns=("numalloc", "glibc")), content)["a/1"]) == ["glibc", "numalloc"]
    assert shown(experiment("partner"), content)["a/1"] == {"glibc": 2}
    assert shown(experiment("speedup"), content)["a/4"] == {"glibc": 4, "glibc+binding": 8, "numalloc": 16}
    assert shown(experiment("spread"), content)["a/1"]["glibc"] == 2
    assert shown(experiment("value"), content)["a/1"]["glibc"] == 12
    assert shown(experiment("value", "peak", over="asked"), content)["a/1"]["glibc"] == 4


FACTS = {"processor": "P", "cpus": 2, "kernel": "6", "system": "S"}


def test_page_says_what_one_node_cannot_show(tmp_path):
    one, call = experiment("ratio"), CALL
    where = how(tmp_path)
    where.file(call).parent.mkdir(parents=True)
    results(["glibc", "numalloc"], ("a", 1, "glibc", 1, 2.0), ("a", 1, "numalloc", 1, 1.0)).write(where.file(call))
    page.write([one], {"few": call}, where, FACTS | {"nodes": 1}, {}, lambda *_: True)
    text = (where.output / "papers.md").read_text()
    assert "**On this machine of one node:** here" in text and "| a/1 | 1 | 0.5 |" in text
    picture = (where.output / "000-test.svg").read_text()
    page.write([one], {"few": call}, where, FACTS | {"nodes": 8}, {}, lambda *_: True)
    assert "one node" not in (where.output / "papers.md").read_text()
    assert (where.output / "000-test.svg").read_text() == picture, "the same data, the same picture"
    [kept] = json.loads((where.output / "papers.json").read_text())["experiments"]
    assert kept["tables"][0]["rows"]["a/1"] == {"glibc": 1.0, "numalloc": 0.5}
