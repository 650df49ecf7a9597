"""`research scope` itself: the machine that its options make, what it refuses, comparisons, with made-up counts."""

import json
import subprocess
import sys

import pytest
from in_process import status_of
from limits import LIMIT
from numalloc_tools.guest import batch
from scope_counts import made_up_machine, recorded, run

from research.scope import hardware, measure, settings, tables


def target(
    preset="xeon-8x16",
    machine=None,
    nodes=None,
    per_package=None,
    cpus="2",
    memory="512M",
    changes=(),
    parallelism=None,
    part=False,
):
    return settings.target(preset, machine, nodes, per_package, cpus, memory, list(changes), parallelism, part)


def test_the_virtual_machine_has_the_real_one_s_distances():
    found = target()
    assert found.machine.cpus == 16 and found.machine.distances[1] == (21, 10, 21, 21, 31, 21, 31, 31)
    assert found.llcs_per_node == 1


def test_chiplets_have_last_levels_of_their_own():
    assert target("epyc-2x96").llcs_per_node == 3 and target("epyc-2x96", per_package=1).llcs_per_node == 12


def test_caches_of_another_size():
    found = target(changes=["llc=4M", "l2=512K:8", "tlb.l2=2048:8"]).hardware
    assert found.caches["llc"] == (4 << 20, 16), "11 ways would leave a rest"
    assert found.caches["l2"] == (512 << 10, 8) and found.tlbs["l2"] == (2048, 8)
    assert target(parallelism=1).hardware.parallelism == 1


def test_in_proportion_a_small_machine_stands_for_the_whole():
    whole, part = hardware.named("xeon-8x16"), target(part=True).hardware
    assert part.caches["llc"] == (whole.caches["llc"][0] // 8, 11)
    assert part.memory_per_package == whole.memory_per_package / 8 and part.link == whole.link / 8
    assert part.caches["l2"] == whole.caches["l2"], "it belongs to one core"
    epyc = target("epyc-2x96", cpus="6", part=True).hardware
    assert epyc.caches["llc"] == (8 << 20, 16), "three chiplets of eight cores, of which two are there"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no program is named; accepted: research scope"),
        (["--preset", "vax", "--", "true"], "--preset: 'vax' is unknown; accepted: epyc-2x96"),
        (["--machine", "/nowhere.toml", "--", "true"], "--machine: /nowhere.toml cannot be read"),
        (
            ["--nodes", "1", "--", "true"],
            "--nodes: 1 is no whole number of packages of 1 nodes; accepted: a multiple of that, 2 or more",
        ),
        (["--cpus-per-node", "17", "--", "true"], "--cpus-per-node: 17 on a node; accepted: up to the 16"),
        (
            ["--set", "l3=4M", "--", "true"],
            "--set: 'l3=4M' is not understood; accepted: NAME=SIZE or NAME=SIZE:WAYS, with NAME one of l1, l2, llc",
        ),
        (["--set", "l2=100:3", "--", "true"], "--set: 'l2=100:3': 100 in 3 ways leaves a rest"),
        (["--parallelism", "0.5", "--", "true"], "--parallelism: 0.5 is no number of misses under way at once; accepted: 1"),
        (["--parallelism", "inf", "--", "true"], "--parallelism: inf is no number of misses under way at once; accepted: 1"),
        (["--set", "l1=24K:8", "--", "true"], "--set: the l1 of xeon-8x16 has 48 sets; accepted: a power of two"),
        (["--nodes", "128", "--", "true"], "--nodes: 128 are too many; accepted: up to 32"),
        (["--nodes-per-package", "8", "--", "true"], "--nodes: 64 are too many; accepted: up to 32"),
        (
            ["--preset", "epyc-2x96", "--nodes", "32", "--cpus-per-node", "3", "--", "true"],
            "--cpus-per-node: they use 96 last-level caches; accepted: CPUs that use up to 64",
        ),
        (
            ["--set", "llc=1536K:16", "--set", "l2=1536K:16", "--set", "l1=2K:4", "--sample", "16", "--", "true"],
            "--sample: of the l1's 8 sets 16 leave 8; accepted: up to 8",
        ),
        (["--window", "half", "--", "true"], "--window: 'half' is unknown; accepted: markers, main, whole"),
        (["--folded", "/tmp/a", "--", "true"], "--folded: no stacks are sampled; accepted: --stacks with it"),
        (["--sample", "3", "--", "true"], "--sample: 3 is not understood; accepted: 1 (every set), 2, 4, 8 ... 64"),
        (["--timeout", "0", "--", "true"], "--timeout: 0 is not a time"),
        (["--thp", "maybe", "--", "true"], "--thp: 'maybe' is unknown; accepted: always, madvise, never"),
        (["--threads", "1,2", "--", "true"], "--threads: {threads} is not in the command; accepted: both, or neither"),
        (["--", "true", "{threads}"], "--threads: {threads} is in the command; accepted: both, or neither"),
        (["--threads", "0", "--", "true", "{threads}"], "--threads: 0 is too few; accepted: 1 or more"),
        (["--host", "0", "--window", "whole", "--", "true"], "--host: 0 rounds are too few; accepted: 1 or more"),
        (["--host", "1", "--", "true"], "--host: callgrind counts a whole run as it is; accepted: --window whole"),
        (["--host", "1", "--window", "whole", "--", "nosuch"], "--host: nosuch is not on this machine"),
        (["--compare", "nomalloc", "--", "true"], "--allocators: 'nomalloc' is unknown; accepted: numalloc, glibc"),
        (["--json", "/nowhere/a.json", "--", "true"], "--json: the folder of /nowhere/a.json does not exist"),
        (["--html", "/nowhere/a.html", "--", "true"], "--html: the folder of /nowhere/a.html does not exist"),
    ],
)
def test_bad_input_is_one_line_and_status_2(words, said, library, capsys):
    assert numalloc("--library", library, *words) == 2
    captured = capsys.readouterr()
    assert said in captured.err and captured.err.count("\n") == 1 and captured.out == ""


@pytest.fixture
def library(tmp_path):
    path = tmp_path / "libnumalloc.so"
    path.write_bytes(b"\x7fELF")
    return str(path)


def numalloc(*words: str) -> int:
    return status_of("scope", *words)


def test_a_comparison_runs_each_allocator_with_each_number_of_threads(library, tmp_path, monkeypatch, capsys):
    asked = []

    def counts_of(machine, job, told):
        asked.append((job.environment.get("LD_PRELOAD", "").rpartition("/")[2], job.command, job.environment.get("LEVEL"), told.window))
        if job.command[-1] == "4" and "LD_PRELOAD" not in job.environment:
            return "one line\nno memory"
        return recorded(remote=0 if job.environment.get("LD_PRELOAD") else 900)

    monkeypatch.setattr(measure.launch, "run", made_up_machine(counts_of))
    written, drawn = tmp_path / "out.json", tmp_path / "out.html"
    status = numalloc(
        "--compare",
        "glibc,numalloc",
        "--library",
        library,
        "--threads",
        "2,4",
        "--preset",
        "xeon-4x16",
        "-e",
        "LEVEL=3",
        "--window",
        "markers",
        "--json",
        str(written),
        "--html",
        str(drawn),
        "--",
        "./larson",
        "--threads",
        "{threads}",
    )
    assert status == 1, "a run failed"
    assert [(name, command[-1]) for name, command, _, _ in asked] == [
        ("", "2"),
        ("libnumalloc.so", "2"),
        ("", "4"),
        ("libnumalloc.so", "4"),
    ]
    assert {one[2:] for one in asked} == {("3", "markers")}
    content = json.loads(written.read_text())
    assert [(one["allocator"], one["threads"], one["reason"]) for one in content["runs"]] == [
        ("glibc", 2, ""),
        ("numalloc", 2, ""),
        ("glibc", 4, "it ended with status 1; it last said: no memory"),
        ("numalloc", 4, ""),
    ]
    text = capsys.readouterr().out
    assert "glibc/4: it ended with status 1; it last said: no memory" in text and "numalloc/4" in text
    assert "<h1><b>numalloc</b> scope</h1>" in drawn.read_text()


def test_one_allocator_that_runs_well_is_status_0(library, monkeypatch, capsys):
    monkeypatch.setattr(measure.launch, "run", made_up_machine(lambda *_: run([0, 0, 1, 1], [{"instructions": 5}] * 4)))
    assert numalloc("--library", library, "--", "true") == 0


def test_files_are_written_though_nobody_reads_the_tables(library, tmp_path, monkeypatch):
    def has_enough(*_) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(measure.launch, "run", made_up_machine(lambda *_: run([0, 0, 1, 1], [{"instructions": 5}] * 4)))
    monkeypatch.setattr(tables, "show", has_enough)
    written = tmp_path / "out.json"
    numalloc("--compare", "glibc", "--json", str(written), "--", "./larson")
    assert written.is_file()


def test_the_emulator_is_told_the_machine(library, monkeypatch):
    told = []

    def counts_of(machine, job, settings):
        told.append((machine, settings))
        return run([0, 1], [{}, {}])

    monkeypatch.setattr(measure.launch, "run", made_up_machine(counts_of))
    machine_words = ("--preset", "epyc-2x96", "--set", "tlb.l2=2048:8")
    counted_words = ("--sample", "4", "--objects", "--stacks", "--kernel", "--children")
    numalloc("--library", library, *machine_words, *counted_words, "--", "true")
    machine, settings = told[0]
    assert settings.objects and settings.stacks and settings.kernel and settings.children
    caches = settings.caches
    assert (machine.cpus, settings.sample, settings.window) == (16, 4, "main")
    assert (caches.l1.size, caches.l2.ways, caches.llc.size, caches.llcs_per_node) == (32 << 10, 8, 32 << 20, 3)
    assert (caches.tlb_l1_2m.size, caches.tlb_l2.size, caches.tlb_l2.ways) == (72, 2048, 8)


@pytest.mark.parametrize(
    ("result", "counted", "said"),
    [
        (batch.Result(0, "", "", 1), {}, "the machine ran out of memory"),
        (batch.Result(137, "", "", 0), None, "it was stopped after 3600 s"),
        (batch.Result(137, "", "a\nboom\n", 0), {}, "it was ended by signal 9; it last said: boom"),
        (batch.Result(124, "", "", 0), {}, "it ended with status 124; it last said: nothing on standard error"),
        (batch.Result(139, "", "a\nboom\n", 0), None, "it was ended by signal 11; it last said: boom"),
        (batch.Result(3, "", "", 0), None, "it ended with status 3; it last said: nothing on standard error"),
        (batch.Result(0, "", "", 0), None, "it ended well, but nothing was counted: the window never began or did not end"),
    ],
)
def test_why_a_run_does_not_count(result, counted, said, library, monkeypatch, capsys):
    def run_all(machine, jobs, settings, on_end, **switches):
        on_end("0", measure.launch.Counted(result, counted))

    monkeypatch.setattr(measure.launch, "run", run_all)
    assert numalloc("--library", library, "--", "true") == 1
    assert f"numalloc: {said}\n" in capsys.readouterr().out


def test_a_machine_that_stops_early(library, monkeypatch, capsys):
    monkeypatch.setattr(measure.launch, "run", made_up_machine(lambda *_: None))
    assert numalloc("--library", library, "--", "true") == 1
    assert "numalloc: the machine stopped before it ended\n" in capsys.readouterr().out


def test_a_preset_can_be_printed_and_changed(tmp_path, capsys):
    assert numalloc("--preset", "xeon-2x20", "--show-preset") == 0
    text = capsys.readouterr().out
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("cpi = 0.5", "cpi = 1.5"))
    assert hardware.read(path).cpi == 1.5 and hardware.read(path).caches == hardware.named("xeon-2x20").caches


def test_no_other_command_loads_numpy():
    """It takes long, and asks for calls about nodes that a strict seccomp filter answers by ending the caller."""
    words = "import sys, numalloc_tools.cli; numalloc_tools.cli.made(); sys.exit(any(name in sys.modules for name in ('numpy', 'scipy', 'matplotlib')))"
    assert subprocess.run([sys.executable, "-c", words], timeout=LIMIT).returncode == 0
