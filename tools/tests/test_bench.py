"""`numalloc bench`: real runs of tiny programs under real libraries, in a folder laid out like a working tree."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from limits import LIMIT, alive, children_named, wait_until
from numalloc_tools.bench.results import read
from numalloc_tools.machine.brief import facts

ROOT = Path(__file__).resolve().parents[2]
# A library that counts as numalloc here, so that this holds before anything is built: it changes nothing.
NOTHING = "int numalloc_changes_nothing;"
ABORTS = "#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }"
# Takes --threads N --scale S --seed K. What it does is told by its name.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **words) {
    const char *name = strrchr(words[0], '/') + 1;
    size_t size = !strcmp(name, "large") ? 64 << 20 : 1 << 20;
    char *block = malloc(size);
    memset(block, 1, size);
    if (!strcmp(name, "hangs")) sleep(1000);
    if (!strcmp(name, "crashes")) raise_it();
    if (!strcmp(name, "fails")) { fprintf(stderr, "out of luck\n"); return 3; }
    free(block);
    struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
    printf("{\"program\": \"%s\", \"threads\": %s, \"operations\": %d, \"seconds\": 0.005, \"check\": \"%s\"}\n",
           name, words[2], count > 7 && !strcmp(words[7], "--paper") ? 1000 : 10, strcmp(name, "damaged") ? "ok" : "bad");
    return !strcmp(name, "damaged") && count < 0;
}
""".replace("raise_it()", "abort()")
PROGRAMS = ["small", "large", "hangs", "crashes", "fails", "damaged"]


def compiled(source: str, output: Path, *flags: str) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no compiler here")
    subprocess.run(
        [compiler, "-x", "c", "-", "-O1", "-fno-builtin", *flags, "-o", str(output)], input=source, text=True, check=True, timeout=LIMIT
    )
    return output


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A working tree: the table, the programs, and a library in build/release."""
    folder = tmp_path_factory.mktemp("tree")
    release = folder / "build/release"
    (release / "bench").mkdir(parents=True)
    (folder / "bench").mkdir()
    rows = [
        {
            "name": name,
            "family": "good" if name in ("small", "large") else "bad",
            "description": "tests",
            "source": "here",
            "threads": [1, 2],
            "standard_threads": 2,
            "paper": name in ("small", "hangs"),
        }
        for name in [*PROGRAMS, "unbuilt"]
    ]
    (folder / "bench/programs.json").write_text(json.dumps({"programs": rows}))
    first = compiled(PROGRAM, release / "bench/small")
    for name in PROGRAMS[1:]:
        shutil.copy(first, release / "bench" / name)
    compiled(NOTHING, release / "libnumalloc.so", "-shared", "-fPIC")
    compiled(NOTHING, release / "libnumalloc-binding.so", "-shared", "-fPIC")
    compiled(NOTHING, release / "other.so", "-shared", "-fPIC")
    compiled(ABORTS, release / "aborts.so", "-shared", "-fPIC")
    return folder


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from numalloc_tools.cli import main; main()", "bench", *arguments]


def bench(tree: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(command(*arguments), cwd=tree, capture_output=True, text=True, timeout=LIMIT)


@pytest.fixture(scope="module")
def results(tree):
    """Two good programs under four allocators."""
    done = bench(
        tree,
        "--only",
        "good",
        "--allocators",
        "numalloc,glibc,glibc+binding",
        "--allocator",
        "other=build/release/other.so",
        "--rounds",
        "2",
        "--threads",
        "1,2",
        "--json",
        "good.json",
    )
    assert done.returncode == 0, done.stderr
    return read(tree / "good.json")


def test_every_cell_has_its_figures(results):
    assert results.complete
    assert results.cases == ["small/1", "small/2", "large/1", "large/2"]
    assert results.names == ["numalloc", "glibc", "glibc+binding", "other"]
    assert len(results.runs) == 4 * 4 * 3
    for run in results.runs:
        assert run.status == "ok", run
        figures = run.figures
        assert figures["seconds"] == 0.005 and figures["operations"] == 10
        assert figures["wall"] >= 0.005
        assert {"user", "system", "cpu_seconds", "minor_faults", "major_faults", "settled_bytes"} <= figures.keys()
        assert ("huge_bytes" in figures) == (run.round == 0)


@pytest.mark.full("asserts resident memory")
def test_peak_is_the_programs_own(results):
    """Not the interpreter's that started it, and with the block that it had."""
    for run in results.runs:
        peak = run.figures["peak_bytes"]
        assert (64 << 20 if run.program == "large" else 0) < peak < (70 << 20 if run.program == "large" else 8 << 20)
        assert run.figures["settled_bytes"] < 8 << 20, "the block was freed"


def test_each_round_begins_with_another(results):
    first = [next(run.allocator for run in results.runs if run.round == number) for number in range(3)]
    assert first == ["numalloc", "glibc", "glibc+binding"]


def test_results_include_machine_and_settings(results):
    assert results.machine.keys() == facts().keys()
    assert results.machine["kernel"] == os.uname().release
    assert results.settings["baseline"] == "glibc" and results.settings["rounds"] == 2
    assert results.allocators[0]["libraries"][0].endswith("libnumalloc.so")
    assert results.allocators[2]["libraries"][0].endswith("libnumalloc-binding.so")


@pytest.mark.full("a limit of half a second")
def test_paper_sizes_need_programs_that_have_them(tree):
    done = bench(tree, "--paper", "--allocators", "glibc", "--rounds", "1", "--limit", "0.5", "--json", "paper.json")
    assert done.returncode == 0, done.stderr
    found = read(tree / "paper.json")
    assert found.settings["paper"] and {run.program for run in found.runs} == {"small", "hangs"}
    assert {run.figures["operations"] for run in found.runs if run.program == "small"} == {1000}


@pytest.mark.full("a limit of half a second")
def test_failures_are_rows_with_reasons(tree):
    (tree / "cut.so").write_bytes((tree / "build/release/aborts.so").read_bytes()[:512])
    done = bench(
        tree,
        "--only",
        "bad",
        "--allocators",
        "glibc",
        "--allocator",
        "aborts=build/release/aborts.so",
        "--allocator",
        "cut=cut.so",
        "--rounds",
        "1",
        "--limit",
        "0.5",
        "--json",
        "bad.json",
    )
    assert done.returncode == 0, done.stderr
    rows = {(run.program, run.allocator): run for run in read(tree / "bad.json").runs}
    assert len(rows) == 5 * 3, "none is tried again"
    glibc = {run.program: (run.status, run.reason) for (_, allocator), run in rows.items() if allocator == "glibc"}
    assert glibc["hangs"] == ("timeout", "hangs was stopped after 1 s")
    assert glibc["crashes"][0] == "crash" and "SIGABRT" in glibc["crashes"][1]
    assert glibc["fails"] == ("failed", "fails ended with status 3; it last said: out of luck")
    assert glibc["damaged"][0] == "wrong"
    assert glibc["unbuilt"][0] == "missing" and "--target bench" in glibc["unbuilt"][1]
    assert rows["hangs", "aborts"].status == "crash"
    assert rows["fails", "cut"].status == "not loaded"
    for word in ("timeout", "crash", "failed", "wrong", "missing", "not loaded"):
        assert word in done.stdout


def test_report_is_made(tree, results):
    done = bench(tree, "report", "good.json", "--output", "report")
    assert done.returncode == 0, done.stderr
    page = (tree / "report/index.html").read_text()
    for figure in ("time", "cpu", "memory", "speedup", "binding"):
        assert f'id="{figure}"' in page
        assert (tree / f"report/{figure}.svg").stat().st_size > 5000
    assert page.count("<svg") == 5
    text = (tree / "report/results.md").read_text()
    assert "| small/1 |" in text and "| large/2 |" in text and "![Time, normalised to glibc](time.svg)" in text
    assert "| 1 (2 programs) |" in text and "(speedup.svg)" in text
    assert "http" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace("https://matplotlib.org", "").replace(
        "http://creativecommons.org", ""
    ), "nothing is fetched"


def test_figures_of_the_same_results_have_the_same_bytes(tree, results):
    for folder in ("once", "again"):
        done = bench(tree, "report", "good.json", "--output", folder)
        assert done.returncode == 0, done.stderr
    drawn = sorted((tree / "once").glob("*.svg"))
    assert drawn
    for path in drawn:
        assert path.read_bytes() == (tree / "again" / path.name).read_bytes(), path.name
        assert "<dc:date>" not in path.read_text(), path.name


def test_pictures_of_the_pages_are_svg():
    assert not [*ROOT.glob("docs/**/*.png")]


def test_markdown_can_go_to_another_file(tree, results):
    (tree / "docs").mkdir(exist_ok=True)
    done = bench(tree, "report", "good.json", "--output", "docs/results", "--markdown", "docs/results.md")
    assert done.returncode == 0, done.stderr
    assert "](results/time.svg)" in (tree / "docs/results.md").read_text()
    assert not (tree / "docs/results/results.md").exists()


def test_markdown_repeats_notes(tree, results):
    (tree / "why.md").write_text("`small` walks a cold list.\n")
    done = bench(tree, "report", "good.json", "--notes", "why.md")
    assert done.returncode == 0, done.stderr
    text = (tree / "numalloc-bench-report/results.md").read_text()
    assert text.index("## Beside the best peer") < text.index("`small` walks a cold list.") < text.index("## Time by program")


@pytest.mark.full("a budget of seconds")
def test_budget_of_minutes(tree):
    done = bench(tree, "--only", "small", "--allocators", "glibc", "--rounds", "1000", "--minutes", "0.12", "--json", "budget.json")
    assert done.returncode == 0, done.stderr
    assert "of 1000 rounds" in done.stdout
    assert 2 < len(read(tree / "budget.json").runs) < 500


def test_file_has_a_line_for_each_run(tree, results):
    lines = (tree / "good.json").read_text().splitlines()
    assert sum(line.startswith('{"program"') for line in lines) == len(results.runs)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_keeps_its_results(tree, by):
    output = tree / "kept.json"
    process = subprocess.Popen(
        command("--only", "small,hangs", "--allocators", "glibc,numalloc", "--rounds", "3", "--json", str(output)),
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: children_named(process.pid, "hangs"))
    [started] = children_named(process.pid, "hangs")
    process.send_signal(by)
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, err
    assert "interrupted" in out
    kept = read(output)
    assert not kept.complete
    assert [run.program for run in kept.runs] == ["small", "small"]
    assert not alive(started), "the program was left behind"


def test_results_of_earlier_runs_are_kept(tree, tmp_path):
    output = tmp_path / "same.json"
    for seed, kept in enumerate(("", "same.1.json", "same.2.json")):
        done = bench(tree, "--only", "small", "--allocators", "glibc", "--rounds", "1", "--seed", str(seed), "--json", str(output))
        assert done.returncode == 0, done.stderr
        assert (f"{output} of an earlier run is now {tmp_path / kept}\n" in done.stdout) == bool(kept)
    seeds = {path.name: read(path).settings["seed"] for path in tmp_path.iterdir()}
    assert seeds == {"same.1.json": 0, "same.2.json": 1, "same.json": 2}


def test_pipe_is_not_replaced_by_results(tree, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    done = bench(tree, "--only", "small", "--allocators", "glibc", "--rounds", "1", "--json", str(tmp_path / "pipe"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pipe is a device or pipe" in done.stderr and (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--only", "nothing"], "accepted: bad, crashes, damaged, databases, fails"),
        (["--allocators", "scalloc"], "accepted: numalloc, glibc"),
        (["--allocators", "numalloc+binding"], "each but numalloc also with +binding"),
        (["--allocator", "x"], "accepted: NAME=PATH"),
        (["--allocator", "glibc=/bin/sh"], "accepted: another name"),
        (["--allocator", "x=/nowhere.so"], "/nowhere.so is not a file"),
        (["--rounds", "0"], "accepted: 1 or more"),
        (["--minutes", "0"], "--minutes: 0 is too little"),
        (["report", "good.json", "--markdown", "/nowhere/x.md"], "folder of /nowhere/x.md does not exist"),
        (["report", "good.json", "--notes", "/nowhere/x.md"], "--notes: /nowhere/x.md cannot be read"),
        (["--threads", "two"], "accepted: numbers such as 1,2,4, or all"),
        (["--paper", "--quick"], "--paper: a run takes minutes; accepted: without --quick and --lab"),
        (
            ["--paper", "--only", "large"],
            "--paper: large has no paper sizes; accepted: --only analytics, point-clusters, ray-casting or multigrid",
        ),
        (["--scale", "0"], "accepted: more than 0"),
        (["--lab", "--limit", "5", "--only", "unbuilt"], "--limit: does not apply to the lab's machine; accepted: without --lab"),
        (["--lab", "--minutes", "5", "--only", "unbuilt"], "--minutes: does not apply to the lab's machine; accepted: without --lab"),
        (["--baseline", "tcmalloc", "--allocators", "numalloc"], "--baseline: 'tcmalloc' is not measured"),
        (["--ablations", "--allocators", "glibc"], "--ablations compares numalloc with itself only"),
        (["--json", "/nowhere/x.json"], "folder of /nowhere/x.json does not exist"),
        (["report", "bench/programs.json"], "is not of format numalloc-bench"),
        (["report", "nowhere.json"], "No such file"),
    ],
)
def test_errors_are_one_line_and_status_2(tree, results, arguments, named):
    done = bench(tree, *arguments)
    assert done.returncode == 2, done.stdout
    assert named in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", [["--nodes", "8"], ["--cpus-per-node", "2"], ["--memory-per-node", "1G"]], ids=" ".join)
def test_options_of_the_lab_need_the_lab(tree, tmp_path, option):
    short = ["--only", "small", "--allocators", "glibc", "--rounds", "1", "--json", str(tmp_path / "lab.json")]
    done = bench(tree, *short, *option)
    assert (done.returncode, done.stderr) == (
        2,
        f"numalloc: {option[0]}: applies to the lab's machine only; accepted: together with --lab\n",
    )


def test_list_names_missing_needs(tree):
    done = bench(tree, "--list")
    assert done.returncode == 0
    assert "small" in done.stdout and "unbuilt" in done.stdout and "is not built" in " ".join(done.stdout.split())
