"""`numalloc bench`: real runs of tiny programs under real libraries, in a folder laid out like a working tree."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from numalloc_tools.bench import launch, machine
from numalloc_tools.bench.allocators import Allocator
from numalloc_tools.bench.results import read

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
    subprocess.run([compiler, "-x", "c", "-", "-O1", "-fno-builtin", *flags, "-o", str(output)], input=source, text=True, check=True)
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
    return subprocess.run(command(*arguments), cwd=tree, capture_output=True, text=True)


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


def test_peak_is_the_programs_own(results):
    """Not the interpreter's that started it, and with the block that it had."""
    for run in results.runs:
        peak = run.figures["peak_bytes"]
        assert (64 << 20 if run.program == "large" else 0) < peak < (70 << 20 if run.program == "large" else 8 << 20)
        assert run.figures["settled_bytes"] < 8 << 20, "the block was freed"


HOPS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
static void *hop(void *number) {
    cpu_set_t may, one;
    sched_getaffinity(0, sizeof may, &may);
    int cpu[2], found = 0;
    for (int i = 0; i < CPU_SETSIZE && found < 2; ++i)
        if (CPU_ISSET(i, &may)) cpu[found++] = i;
    if (found < 2) exit(77);
    for (long i = 0; i < (long)number; ++i) {
        CPU_ZERO(&one);
        CPU_SET(cpu[i % 2], &one);
        if (sched_setaffinity(0, sizeof one, &one) != 0) exit(77);
    }
    return NULL;
}
int main(int count, char **words) {
    pthread_t thread;
    pthread_create(&thread, NULL, hop, (void *)atol(words[count - 1]));
    return pthread_join(thread, NULL);
}
"""


def test_migrations_of_threads_that_have_ended_are_counted(tmp_path):
    hops = compiled(HOPS, tmp_path / "hops", "-pthread")
    few, many = (launch.run([str(hops), number], Allocator("glibc"), 30) for number in ("1", "1001"))
    if few.figures["status"] == 77 or "thread_migrations" not in few.figures:
        pytest.skip("there is one CPU, or the kernel does not count")
    more = many.figures["thread_migrations"] - few.figures["thread_migrations"]
    assert 990 <= more <= 1100, "each hop is one; the kernel adds a few of its own"


def test_migrations_of_pages_are_those_of_the_run(tmp_path):
    """With a /proc/vmstat that the program itself writes."""
    vmstat = tmp_path / "vmstat"
    launcher = tmp_path / "launcher"
    source = Path(launch.__file__).with_name("launcher.c").read_text()
    compiled(source, launcher, f'-DVMSTAT="{vmstat}"')

    def figures(before: str, after: str) -> dict[str, str]:
        vmstat.write_text(before)
        script = f"printf '{after}' > {vmstat}"
        done = subprocess.run([launcher, "1", "10", "0", "-", "sh", "-c", script], capture_output=True, text=True, check=True)
        return dict(line.split() for line in done.stdout.splitlines())

    found = figures(
        "some_pgmigrate_success 1\npgmigrate_success 100\nnuma_pages_migrated 5\n", r"numa_pages_migrated 12\npgmigrate_success 130\n"
    )
    assert (found["pages_migrated"], found["pages_migrated_by_autonuma"]) == ("30", "7")
    assert "pages_migrated_by_autonuma" not in figures("pgmigrate_success 1\n", r"pgmigrate_success 1\n"), "a kernel without AutoNUMA"


def test_each_round_begins_with_another(results):
    first = [next(run.allocator for run in results.runs if run.round == number) for number in range(3)]
    assert first == ["numalloc", "glibc", "glibc+binding"]


def test_machine_and_settings_are_told(results):
    assert results.machine.keys() == machine.facts().keys()
    assert results.machine["kernel"] == os.uname().release
    assert results.settings["baseline"] == "glibc" and results.settings["rounds"] == 2
    assert results.allocators[0]["libraries"][0].endswith("libnumalloc.so")
    assert results.allocators[2]["libraries"][0].endswith("libnumalloc-binding.so")


def test_papers_sizes_are_for_those_that_have_them(tree):
    done = bench(tree, "--paper", "--allocators", "glibc", "--rounds", "1", "--limit", "0.5", "--json", "paper.json")
    assert done.returncode == 0, done.stderr
    found = read(tree / "paper.json")
    assert found.settings["paper"] and {run.program for run in found.runs} == {"small", "hangs"}
    assert {run.figures["operations"] for run in found.runs if run.program == "small"} == {1000}


def test_what_goes_wrong_is_a_row_that_says_so(tree):
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
    for figure in ("means", "time", "cpu", "memory", "speedup", "binding"):
        assert f'id="{figure}"' in page
        assert (tree / f"report/{figure}.svg").stat().st_size > 5000
    assert page.count("<svg") == 6
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


def test_markdown_can_lie_elsewhere(tree, results):
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


def test_budget_of_minutes(tree):
    done = bench(tree, "--only", "small", "--allocators", "glibc", "--rounds", "1000", "--minutes", "0.12", "--json", "budget.json")
    assert done.returncode == 0, done.stderr
    assert "of 1000 rounds" in done.stdout
    assert 2 < len(read(tree / "budget.json").runs) < 500


def test_file_has_a_line_for_each_run(tree, results):
    lines = (tree / "good.json").read_text().splitlines()
    assert sum(line.startswith('{"program"') for line in lines) == len(results.runs)


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_keeps_what_is_done(tree, by):
    output = tree / "kept.json"
    process = subprocess.Popen(
        command("--only", "small,hangs", "--allocators", "glibc,numalloc", "--rounds", "3", "--json", str(output)),
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(0.5)
    for _ in range(200):
        if children_named("hangs"):
            break
        time.sleep(0.05)
    process.send_signal(by)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "interrupted" in out
    kept = read(output)
    assert not kept.complete
    assert [run.program for run in kept.runs] == ["small", "small"]
    time.sleep(0.2)
    assert not children_named("hangs"), "the program was left behind"


def children_named(name: str) -> list[str]:
    return [path for path in Path("/proc").glob("[0-9]*/comm") if text_of(path) == name]


def text_of(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--only", "nothing"], "accepted: bad, crashes, damaged, databases, fails"),
        (["--allocators", "scalloc"], "accepted: numalloc, glibc"),
        (["--allocators", "numalloc+binding"], "each but numalloc with +binding"),
        (["--allocator", "x"], "accepted: NAME=PATH"),
        (["--allocator", "glibc=/bin/sh"], "accepted: a name of its own"),
        (["--allocator", "x=/nowhere.so"], "/nowhere.so is not a file"),
        (["--rounds", "0"], "accepted: 1 or more"),
        (["--minutes", "0"], "--minutes: 0 is too little"),
        (["report", "good.json", "--markdown", "/nowhere/x.md"], "folder of /nowhere/x.md does not exist"),
        (["report", "good.json", "--notes", "/nowhere/x.md"], "--notes: /nowhere/x.md cannot be read"),
        (["--threads", "two"], "accepted: numbers such as 1,2,4, or all"),
        (["--paper", "--quick"], "--paper: takes minutes a run; accepted: without --quick and --lab"),
        (
            ["--paper", "--only", "large"],
            "--paper: large has no other sizes; accepted: --only with some of small, hangs",
        ),
        (["--scale", "0"], "accepted: more than 0"),
        (["--baseline", "tcmalloc", "--allocators", "numalloc"], "--baseline: 'tcmalloc' is not measured"),
        (["--ablations", "--allocators", "glibc"], "--ablations is about numalloc alone"),
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


def test_list_names_what_is_missing(tree):
    done = bench(tree, "--list")
    assert done.returncode == 0
    assert "small" in done.stdout and "unbuilt" in done.stdout and "is not built" in " ".join(done.stdout.split())
