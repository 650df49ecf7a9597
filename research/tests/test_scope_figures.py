"""`research figures`: the tables by hand, what is kept, and the command with made-up counts."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from in_process import status_of
from limits import LIMIT
from numalloc_tools.launch.launcher import Ended
from numalloc_tools.problem import Problem
from scope_counts import made_up_machine, run

from research.scope import drawing, figures, figures_command, hardware, host, measure, scenarios
from research.scope.figures import Around
from research.scope.host import Beside
from research.scope.results import Results, Run
from research.scope.store import Store

MACHINE = hardware.named("xeon-2x20")


def work(instructions: int, local: int = 0, remote: int = 0) -> dict:
    """Two nodes that do the same."""
    return run([0, 1], [{"instructions": instructions, "fills": fills} for fills in ([local, remote], [remote, local])])


def results(**runs: dict) -> Results:
    return Results(MACHINE, ["x"], {}, [Run(name.replace("_", "+"), 16, raw, MACHINE) for name, raw in runs.items()])


def test_times_are_ratios_with_a_geometric_mean():
    found = {
        "one": results(glibc=work(1_000_000), numalloc=work(500_000), other=work(250_000)),
        "two": results(glibc=work(1_000_000), numalloc=work(125_000)),
        "three": results(glibc=work(1_000_000), numalloc=work(500_000), other=work(1_000_000)),
    }
    text = figures.markdown(found, {}, "a machine")
    assert "| one | 1.00 | 0.50 | 0.25 |" in text and "| two | 1.00 | 0.12 | - |" in text
    assert "| geometric mean of 2 | 1.00 | 0.50 | 0.50 |" in text
    assert "Another one is faster in: one (other takes 0.50 of it)." in text
    assert "modelled, not measured" in text
    slow = {f"a-name-of-many-parts-{number}": results(glibc=work(1_000), numalloc=work(2_000)) for number in range(30)}
    assert not re.search(r"[a-z]-\n", figures.markdown(slow, {}, "a machine")), "names are not broken"


def test_promises_are_named_when_they_are_not_kept():
    kept, remote = work(1_000, local=10_000, remote=50), work(1_000, local=10_000, remote=200)
    uneven = run([0, 1], [{"instructions": 1, "fills": [10_000, 0]}, {}])
    text = figures.markdown(
        {"larson": results(numalloc=kept), "threadtest": results(numalloc=remote), "hash-maps": results(numalloc=uneven)}, {}, "m"
    )
    rows = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if line.endswith(("yes |", "no |"))}
    assert "| 0.50 % | 1.00 |" in rows["larson"] and rows["larson"].endswith("| yes |")
    assert "| 1.96 % | 1.00 |" in rows["threadtest"] and rows["threadtest"].endswith("| no |")
    assert "| 0.00 % | 2.00 |" in rows["hash-maps"] and rows["hash-maps"].endswith("| no |")
    assert "Not kept: threadtest, hash-maps." in text


def test_binding_mechanisms_and_the_study_s_table():
    found = {"hash-maps": results(glibc=work(1_000, 700, 300), numalloc=work(1_000, 999, 1), glibc_binding=work(1_000, 780, 220))}
    found["hash-maps"].runs.append(Run("numalloc:thp=off", 16, work(1_000, 500, 500), MACHINE))
    text = figures.markdown(found, {}, "m")
    assert "figure 6a" in text and "| thp=off |" in text
    assert "| cache misses | 2 k | 2 k | +0.0 % |" in text and "| remote memory access | 600 | 440 | -26.7 % |" in text
    assert "| local access ratio | 0.70 | 0.78 |  |" in text


def test_a_mechanism_s_row_has_its_ratio_for_each_program():
    found = {"one": results(numalloc=work(1_000_000)), "two": results(numalloc=work(1_000_000))}
    found["one"].runs.append(Run("numalloc:thp=off", 16, work(1_500_000), MACHINE))
    found["two"].runs.append(Run("numalloc:thp=off", 16, work(500_000), MACHINE))
    found["two"].runs.append(Run("numalloc:interleave=all", 16, work(750_000), MACHINE))
    text = figures.markdown(found, {}, "m")
    assert "|  | one | two |" in text and "| thp=off | 1.50 | 0.50 |" in text and "| interleave=all | - | 0.75 |" in text


def test_what_stands_around_the_counts():
    rows = [Beside("glibc", 1e6, 0.0, 2.0, 20.0, 9.0, 0.05), Beside("numalloc", 1e6, 0.0, 1.0, 10.0, 40.0, 0.1)]
    around = Around("Made by hand.", "- long " + "word " * 40, {"lists": rows}, {figures.TIMES: "x-times.svg"})
    found = {"lists": results(glibc=work(1_000), numalloc=work(1_000), glibc_binding=work(500))}
    text = figures.markdown(found, {}, "m", around)
    assert text.startswith("# Figures of research scope\n\nMade by hand.\n\nCounted in")
    assert "- long " + "word " * 39 in text, "notes are as they are written"
    in_order = ("## Modelled time, over glibc", "![Modelled time, over](x-times.svg)", "| lists | 1.00")
    places = [text.index(one) for one in in_order]
    assert places == sorted(places)
    assert text.index("| lists | numalloc | 1 M | 1 s | 10 s | 40 s | 10 % |") < text.index("| lists | glibc | 1 M | 2 s |")
    assert "lists 1.00 (-1.00 with the system's)" in text


def test_bars_and_curves():
    figure = drawing.ratios({"glibc": {"one": 1.0, "two": 1.0}, "numalloc": {"one": 0.5}, "far": {"two": 17.0}}, "over")
    axes = figure.axes[0]
    assert [bar.get_height() for bars in axes.containers for bar in bars] == [1.0, 1.0, 0.5, 0, 0, 17.0]
    assert axes.get_ylim()[1] == 3.0, "what is far off does not hide the others"
    swept = {
        name: Results(MACHINE, ["x"], {}, [Run("glibc", threads, work(1_000_000 // threads), MACHINE) for threads in numbers])
        for name, numbers in (("larson", (1, 2, 4)), ("threadtest", (1, 2)), ("one-number", (1,)))
    }
    panels = [one for one in drawing.speedups(swept, "glibc").axes if one.get_visible()]
    assert [one.get_title(loc="left") for one in panels] == ["larson", "threadtest"]
    assert list(panels[0].lines[0].get_ydata()) == pytest.approx([1, 2, 4], rel=0.01)
    assert drawing.speedups({"one-number": swept["one-number"]}, "glibc") is None


def test_speedups_are_over_the_baseline_with_the_fewest_threads():
    swept = {
        "larson": Results(
            MACHINE,
            ["x"],
            {},
            [
                Run(name, threads, work(1_000_000 // speed), MACHINE)
                for name, threads, speed in (("glibc", 1, 1), ("glibc", 8, 4), ("numalloc", 1, 1), ("numalloc", 8, 8))
            ],
        )
    }
    text = figures.markdown({}, swept, "m")
    assert "| larson | 1 threads | 8 threads |" in text and "| glibc | 1.0 | 4.0 |" in text and "| numalloc | 1.0 | 8.0 |" in text


def test_what_was_kept_counts_only_for_the_same(tmp_path):
    store, key = Store(tmp_path), {"allocator": "glibc", "threads": 4, "cpus": 16}
    assert store.find("a", key, MACHINE) is None
    store.keep("a", key, Run("glibc", 4, work(10), MACHINE))
    assert store.find("a", key, MACHINE).raw == work(10) and store.find("a", key | {"cpus": 8}, MACHINE) is None
    (tmp_path / "runs/a.json").write_text("{")
    assert store.find("a", key, MACHINE) is None
    (tmp_path / "file").touch()
    with pytest.raises(Problem, match="--output: .*file cannot be written to"):
        Store(tmp_path / "file")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A working tree with larson and threadtest in its table and build folder."""
    (tmp_path / "bench").mkdir()
    (tmp_path / "build/release/bench").mkdir(parents=True)
    rows = [
        {"name": one.program, "family": "f", "description": "d", "source": "s", "threads": [1], "standard_threads": 1}
        for one in {one.program: one for one in scenarios.ALL}.values()
    ]
    (tmp_path / "bench/programs.json").write_text(json.dumps({"programs": rows}))
    for row in rows:
        (tmp_path / "build/release/bench" / row["name"]).touch()
    library = tmp_path / "build/release/libnumalloc.so"
    library.write_bytes(b"\x7fELF")
    (tmp_path / "numascope.so").touch()
    monkeypatch.setenv("NUMALLOC_SCOPE_PLUGIN", str(tmp_path / "numascope.so"))
    return tmp_path


def numalloc(*words: str) -> int:
    return status_of("figures", *words)


def test_a_second_call_goes_on(tree, monkeypatch, capsys):
    asked, scales = [], []

    def counts_of(machine, job, settings):
        scales.append(job.command[job.command.index("--scale") + 1])
        asked.append((job.command[-1], "LD_PRELOAD" in job.environment, machine.cpus))
        if len(asked) == 2:
            return "boom"
        nodes = [node for node, one in enumerate(machine.nodes) for _ in range(one.cpus)]
        return run(nodes, [{"instructions": 1_000}] * len(nodes))

    monkeypatch.setattr(measure.launch, "run", made_up_machine(counts_of))
    monkeypatch.chdir(tree)
    words = (
        "--library",
        str(tree / "build/release/libnumalloc.so"),
        "--allocators",
        "glibc",
        "--only",
        "threadtest",
        "--output",
        "out",
    )
    assert numalloc(*words) == 1
    assert asked == [("16", True, 16), ("16", False, 16)]
    assert "threadtest glibc/16: it ended with status 1; it last said: boom" in capsys.readouterr().out
    assert numalloc(*words) == 0
    assert asked[2:] == [("16", False, 16)], "what went well is not run again"
    text = (tree / "out/figures-xeon-8x16-16.md").read_text()
    assert "| threadtest | 1.00 | 1.00 |" in text and (tree / "out/threadtest-xeon-8x16-16.html").is_file()
    assert numalloc(*words, "--cpus-per-node", "1") == 0
    assert [cpus for _, _, cpus in asked[3:]] == [8, 8], "another machine is another run"
    assert numalloc(*words, "--groups", "speedup", "--sweep-cpus-per-node", "1") == 0
    assert [threads for threads, _, _ in asked[5:]] == ["1", "1", "2", "2", "4", "4"], "8 threads on 8 CPUs are there already"
    assert (tree / "out/threadtest-speedup-xeon-8x16-8.html").is_file()
    text = (tree / "out/figures-xeon-8x16-16.md").read_text()
    assert "figure 5" in text and "| threadtest | 1.00 | 1.00 |" in text, "another call's groups stay"
    assert numalloc(*words, "--scale", "0.5") == 0
    assert scales == ["0.02"] * 11 + ["0.01"] * 2, "and other work is too"
    assert numalloc(*words) == 0 and len(scales) == 13, "which leaves what was kept before"
    os.utime(tree / "build/release/bench/threadtest", (1, 1))
    assert numalloc(*words) == 0 and len(scales) == 15, "a program that was built anew is another one"
    os.utime(tree / "numascope.so", (1, 1))
    assert numalloc(*words) == 0 and len(scales) == 17, "and what another plugin counted is not mixed in"


def test_each_machine_has_files_of_its_own(tree, monkeypatch):
    ran = []

    def counts_of(machine, job, settings):
        ran.append(machine.cpus)
        nodes = [node for node, one in enumerate(machine.nodes) for _ in range(one.cpus)]
        return run(nodes, [{"instructions": 1_000}] * len(nodes))

    monkeypatch.setattr(measure.launch, "run", made_up_machine(counts_of))
    monkeypatch.chdir(tree)
    words = ("--library", str(tree / "build/release/libnumalloc.so"), "--allocators", "glibc", "--output", "out")
    for preset, only in (("xeon-8x16", "trees"), ("epyc-2x96", "trees"), ("xeon-8x16", "trees"), ("xeon-8x16", "lists")):
        assert numalloc(*words, "--preset", preset, "--only", only) == 0
    assert len(ran) == 6, "the third call has everything"
    assert {"trees-xeon-8x16-16.html", "trees-epyc-2x96-16.html"} <= {path.name for path in (tree / "out").iterdir()}
    text = (tree / "out/figures-xeon-8x16-16.md").read_text()
    assert "| trees |" in text and "| lists |" in text, "another call's programs stay"


def test_the_sweep_of_larson_has_a_quarter_of_the_work(tree, monkeypatch, capsys):
    scales = set()

    def counts_of(machine, job, settings):
        scales.add(job.command[job.command.index("--scale") + 1])
        nodes = [node for node, one in enumerate(machine.nodes) for _ in range(one.cpus)]
        return run(nodes, [{"instructions": 1_000}] * len(nodes))

    monkeypatch.setattr(measure.launch, "run", made_up_machine(counts_of))
    monkeypatch.chdir(tree)
    words = ("--library", str(tree / "build/release/libnumalloc.so"), "--allocators", "glibc", "--only", "larson")
    assert numalloc(*words, "--groups", "speedup", "--sweep-cpus-per-node", "1") == 0 and scales == {"0.05"}
    text = (tree / "figures/figures-xeon-8x16-16.md").read_text()
    assert "for the speedup larson 0.25 of it" in text and "Beside it: glibc " in text and "glibc glibc" not in text
    assert "(figures-xeon-8x16-16-speedup.svg)" in text


def test_this_machine_s_times_are_kept_and_stand_in_the_document(tree, monkeypatch, capsys):
    counted, timed = [], []

    def counts_of(machine, job, settings):
        counted.append((settings.window, [one.cpus for one in machine.nodes]))
        return run([0, 0], [{"instructions": 1_000}, {"instructions": 1_000}])

    def ran(command, allocator, limit):
        timed.append((allocator.name, command[-1]))
        return Ended({"user": 1.0 + len(timed), "system": 0.0})

    monkeypatch.setattr(measure.launch, "run", made_up_machine(counts_of))
    monkeypatch.setattr(host.launcher, "run", ran)
    monkeypatch.setattr(host, "_callgrind", lambda *_: pytest.fail("callgrind takes too long here"))
    monkeypatch.chdir(tree)
    (tree / "build/release/bench/hash-maps").chmod(0o755)
    (tree / "notes.md").write_text("- as it is\n")
    words = ("--library", str(tree / "build/release/libnumalloc.so"), "--allocators", "glibc", "--only", "hash-maps")
    words += ("--document", "text.md", "--notes", "notes.md")
    assert numalloc(*words, "--groups", "host") == 0
    assert counted == [("whole", [2, 0])] * 2, "two threads on one node, from the program's start to its end"
    assert len(timed) == 2 * scenarios.HOST_ROUNDS and {threads for _, threads in timed} == {"2"}
    text = (tree / "text.md").read_text()
    assert "## The model beside this machine" in text and "| hash-maps | glibc | 2 k |" in text and "\n- as it is\n" in text
    assert numalloc(*words) == 0 and len(timed) == 2 * scenarios.HOST_ROUNDS, "they are not measured again"
    text = (tree / "text.md").read_text()
    assert "| hash-maps | glibc | 2 k |" in text and "(text-times.svg)" in text and (tree / "text-times.svg").is_file()
    assert [path.name for path in (tree / "figures").glob("*.html")] == ["hash-maps-xeon-8x16-16.html"]
    page = tree / "figures/hash-maps-xeon-8x16-16.html"
    page.write_text("as it was")
    assert numalloc(*words) == 0 and page.read_text() == "as it was", "nothing was run, so the page stays"


def test_the_library_is_named_by_its_sources(tmp_path):
    def git(*words):
        whose = ("-c", "user.name=n", "-c", "user.email=e@x")
        subprocess.run(["git", "-C", str(tmp_path), *whose, *words], check=True, capture_output=True, timeout=LIMIT)

    git("init", "-q")
    (tmp_path / "src").mkdir()
    (tmp_path / "include").mkdir()
    (tmp_path / "src/a.cpp").write_text("1")
    (tmp_path / "include/a.h").write_text("1")
    git("add", ".")
    git("commit", "-qm", "first")
    library = tmp_path / "libnumalloc.so"
    first = figures_command._sources_of(library)
    (tmp_path / "read.me").write_text("1")
    git("add", ".")
    git("commit", "-qm", "second")
    assert first and figures_command._sources_of(library) == first, "prose does not make it another library"
    (tmp_path / "src/a.cpp").write_text("2")
    assert figures_command._sources_of(library) == f"{first}-dirty"
    git("commit", "-qam", "third")
    assert figures_command._sources_of(library) not in (first, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--groups", "all"], "--groups: 'all' is unknown; accepted: compare, binding, mechanisms, speedup, host"),
        (["--only", "vax*"], "--only: 'vax*' fits no program; accepted: threadtest, larson"),
        (
            ["--groups", "speedup", "--only", "trees"],
            "--only: 'trees' fits no program that is swept; accepted with --groups speedup: threadtest, larson, cache-scratch",
        ),
        (["--document", "none/a.md"], "--document: the folder of none/a.md does not exist"),
        (["--notes", "none.md"], "--notes: none.md cannot be read (No such file or directory); accepted: a text file"),
        (["--scale", "0"], "--scale: 0 is too little; accepted: more than 0, such as 0.5"),
        (["--timeout", "-1"], "--timeout: -1 is not a time; accepted: whole seconds"),
        (["--allocators", "nomalloc"], "--allocators: 'nomalloc' is unknown"),
        (["--cpus-per-node", "17"], "--cpus-per-node: 17 on a node"),
    ],
)
def test_bad_input_is_one_line(words, said, tree, monkeypatch, capsys):
    monkeypatch.chdir(tree)
    assert numalloc("--library", str(tree / "build/release/libnumalloc.so"), *words) == 2
    captured = capsys.readouterr()
    assert said in captured.err and captured.err.count("\n") == 1


def test_every_scenario_is_a_program_of_the_table():
    names = {one.name for one in scenarios.ALL}
    assert {*scenarios.SWEPT, *scenarios.PROMISED, *(one.name for one in scenarios.HOSTED)} <= names
    rows = json.loads((Path(__file__).parents[2] / "bench/programs.json").read_text())["programs"]
    assert {one.program for one in (*scenarios.ALL, *scenarios.HOSTED)} <= {row["name"] for row in rows}
    assert {"group-median", "group-count", "hash-join", "index-join"} <= {one.program for one in scenarios.ALL}, "W1 to W4"
    assert figures_command.GROUPS
