"""`numalloc lab scope` itself: the machine that its options make, what it refuses, comparisons, with made-up counts."""

import json
import sys

import pytest
from numalloc_tools import cli
from numalloc_tools.lab.scope import hardware, measure, settings
from numalloc_tools.problem import Problem
from scope_counts import recorded, run


def target(preset="xeon-8x16", machine=None, nodes=None, per_package=None, cpus="2", memory="512M", changes=(), parallelism=None, part=False):
    return settings.target(preset, machine, nodes, per_package, cpus, memory, list(changes), parallelism, part)


def test_the_virtual_machine_has_the_real_one_s_distances():
    found = target()
    assert found.machine.cpus == 16 and found.machine.distances[1] == (21, 10, 21, 21, 31, 21, 31, 31)
    assert found.node_of_cpu() == [cpu // 2 for cpu in range(16)] == found.llc_of_cpu()


def test_chiplets_have_last_levels_of_their_own():
    assert target("epyc-2x96", cpus="6").llc_of_cpu()[:12] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert target("epyc-2x96", cpus="2").llc_of_cpu() == list(range(16)), "no more of them than CPUs"
    assert target("epyc-2x96", cpus="6,3,1,0,2,2,2,2").llc_of_cpu() == [0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14][: 18]
    assert len(set(target("epyc-2x96", per_package=1, cpus="24").llc_of_cpu())) == 24


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
        ([], "no program is named; accepted: numalloc lab scope"),
        (["--preset", "vax", "--", "true"], "--preset: 'vax' is unknown; accepted: epyc-2x96"),
        (["--machine", "/nowhere.toml", "--", "true"], "--machine: /nowhere.toml cannot be read"),
        (["--nodes", "1", "--", "true"], "--nodes: 1 is no whole number of packages of 1 nodes; accepted: a multiple of that, 2 or more"),
        (["--cpus-per-node", "17", "--", "true"], "--cpus-per-node: 17 on a node; accepted: up to the 16"),
        (["--set", "l3=4M", "--", "true"], "--set: 'l3=4M' is not understood; accepted: NAME=SIZE or NAME=SIZE:WAYS, with NAME one of l1, l2, llc"),
        (["--set", "l2=100:3", "--", "true"], "--set: 'l2=100:3': 100 in 3 ways leaves a rest"),
        (["--parallelism", "0.5", "--", "true"], "--parallelism: 0.5 is too little; accepted: 1 or more"),
        (["--window", "half", "--", "true"], "--window: 'half' is unknown; accepted: markers, main, whole"),
        (["--sample", "3", "--", "true"], "--sample: 3 is not understood; accepted: 1 (every set), 2, 4, 8 ... 64"),
        (["--timeout", "0", "--", "true"], "--timeout: 0 is not a time"),
        (["--thp", "maybe", "--", "true"], "--thp: 'maybe' is unknown; accepted: always, madvise, never"),
        (["--threads", "1,2", "--", "true"], "--threads: {threads} is not in the command; accepted: both, or neither"),
        (["--", "true", "{threads}"], "--threads: {threads} is in the command; accepted: both, or neither"),
        (["--threads", "0", "--", "true", "{threads}"], "--threads: 0 is too few; accepted: 1 or more"),
        (["--host", "0", "--window", "whole", "--", "true"], "--host: 0 rounds are too few; accepted: 1 or more"),
        (["--host", "1", "--", "true"], "--host: callgrind counts a whole run as it is; accepted: with --window whole"),
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
    path.touch()
    return str(path)


def numalloc(*words: str) -> int:
    """The status of `numalloc lab scope WORDS`."""
    before, sys.argv = sys.argv, ["numalloc", "lab", "scope", *words]
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return ended.value.code
    finally:
        sys.argv = before


def test_a_comparison_runs_each_allocator_with_each_number_of_threads(library, tmp_path, monkeypatch, capsys):
    asked = []

    def counts_of(target, counted, command, environment, files):
        asked.append((environment.get("LD_PRELOAD", "").rpartition("/")[2], command, environment.get("LEVEL"), counted.window))
        if command[-1] == "4" and "LD_PRELOAD" not in environment:
            raise Problem("it was ended by signal 11", 125)
        return recorded(remote=0 if environment.get("LD_PRELOAD") else 900)

    monkeypatch.setattr(measure.launch, "counts_of", counts_of)
    written, drawn = tmp_path / "out.json", tmp_path / "out.html"
    status = numalloc(
        "--compare", "glibc,numalloc", "--library", library, "--threads", "2,4", "--preset", "xeon-4x16", "-e", "LEVEL=3", "--window", "markers",
        "--json", str(written), "--html", str(drawn), "--", "./larson", "--threads", "{threads}",
    )  # fmt: skip
    assert status == 1, "a run failed"
    assert [(name, command[-1]) for name, command, _, _ in asked] == [("", "2"), ("libnumalloc.so", "2"), ("", "4"), ("libnumalloc.so", "4")]
    assert {one[2:] for one in asked} == {("3", "markers")}
    content = json.loads(written.read_text())
    assert [(one["allocator"], one["threads"], one["reason"]) for one in content["runs"]] == [
        ("glibc", 2, ""), ("numalloc", 2, ""), ("glibc", 4, "it was ended by signal 11"), ("numalloc", 4, ""),
    ]  # fmt: skip
    text = capsys.readouterr().out
    assert "glibc/4: it was ended by signal 11" in text and "numalloc/4" in text
    assert "<h1><b>numalloc</b> lab scope</h1>" in drawn.read_text()


def test_one_allocator_that_runs_well_is_status_0(library, monkeypatch, capsys):
    monkeypatch.setattr(measure.launch, "counts_of", lambda *_: run([0, 0, 1, 1], [{"instructions": 5}] * 4))
    assert numalloc("--library", library, "--", "true") == 0


def test_a_preset_can_be_printed_and_changed(tmp_path, capsys):
    sys.argv, before = ["numalloc", "lab", "scope", "--preset", "xeon-2x20", "--show-preset"], sys.argv
    try:
        cli.app(standalone_mode=False)
    finally:
        sys.argv = before
    text = capsys.readouterr().out
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("cpi = 0.5", "cpi = 1.5"))
    assert hardware.read(path).cpi == 1.5 and hardware.read(path).caches == hardware.named("xeon-2x20").caches
