"""Whatever a file holds, its reader either reads it or says in one line what is wrong with it: no traceback."""

import io
import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli_w
from any_file import any_bytes, changed, check, few
from hypothesis import given
from hypothesis import strategies as st
from made_up_machines import machine, node
from numalloc_tools.bench import manifest, results
from numalloc_tools.guest import distances
from numalloc_tools.launch import profile as levers
from numalloc_tools.machine import facts, process
from numalloc_tools.machine.files import Files
from numalloc_tools.observe import page
from numalloc_tools.profile import files as profiles
from numalloc_tools.profile.proto import Profile
from numalloc_tools.profile.samples import VIEWS, lost_records, samples, without_stacks, written_at_exit
from numalloc_tools.symbolize.command import named
from numalloc_tools.topology import text
from numalloc_tools.tune import space
from numalloc_tools.tune.journal import FORMAT, Journal
from rich.console import Console

RESULTS = {
    "format": results.FORMAT,
    "version": results.VERSION,
    "complete": True,
    "seconds": 3.5,
    "machine": {"cpus": 4, "nodes": 2},
    "settings": {"scale": 1.0, "rounds": 2},
    "allocators": [{"name": "glibc"}, {"name": "numalloc"}],
    "programs": [{"name": "larson", "standard_threads": 2}],
    "runs": [
        {
            "program": "larson",
            "threads": 2,
            "allocator": name,
            "round": number,
            "status": "ok",
            "reason": "",
            "figures": {"seconds": 1.5, "peak_bytes": 4096.0},
        }
        for name in ("glibc", "numalloc")
        for number in (1, 2)
    ],
}
PROGRAMS = {
    "program": [{"name": "one", "command": "true", "check": "done", "threads": [1, 2], "sizes": {"N": 3}, "metric": {"rate": "([0-9]+)/s"}}]
}
LEVERS = {"allocator": "glibc", "threads": "default", "binding-only": False, "options": {"purge_delay": 0}}
SPACE = {"allocators": ["glibc", "numalloc"], "threads": ["default"], "options": {"purge_delay": [0, 1000]}}
JOURNAL = [
    {"format": FORMAT, "asked": {"rounds": 3}, "facts": {"seed": 1}},
    {"phase": "race", "stage": "s", "block": 0, "setting": {"allocator": "glibc"}, "run": {"seconds": 1.0}},
]


def read_results(path: Path) -> None:
    found = results.merged([results.read(path), results.read(path)])
    summary = results.Summary(found, "glibc")
    for case in found.cases:
        for name in found.names:
            summary.cell(case, name)
    found.standard_cases(results.TIME)


def read_profile(path: Path) -> None:
    found = profiles.read(path)
    for whole in (found, profiles.merged([found, found])):
        lost_records(whole), without_stacks(whole), written_at_exit(whole)
        for view in VIEWS.values():
            samples(whole, view)


def read_space(path: Path) -> None:
    space.from_file(path, space.usual(["glibc"], 2))


READERS: dict[str, Callable[[Path], object]] = {
    "results": read_results,
    "profile": read_profile,
    "levers": levers.load,
    "programs": lambda path: manifest.programs([path], set()),
    "space": read_space,
    "journal": lambda path: Journal.resume(path, {"rounds": 3}),
    "distances": lambda path: distances.matrix(str(path), 2),
}


@pytest.mark.parametrize("name", READERS)
@any_bytes
def test_any_bytes(name, tmp_path, content):
    check(READERS[name], tmp_path, content)


@few
@given(content=changed(RESULTS))
def test_results_that_were_changed(tmp_path, content):
    check(READERS["results"], tmp_path, json.dumps(content).encode())


@few
@given(content=changed(JOURNAL))
def test_journals_that_were_changed(tmp_path, content):
    check(READERS["journal"], tmp_path, "".join(json.dumps(line) + "\n" for line in content).encode())


@pytest.mark.parametrize("name, original", [("levers", LEVERS), ("programs", PROGRAMS), ("space", SPACE)])
@few
@given(data=st.data())
def test_tables_that_were_changed(name, original, tmp_path, data):
    check(READERS[name], tmp_path, tomli_w.dumps(data.draw(changed(original, with_null=False))).encode())


@few
@given(data=st.data())
def test_profiles_that_were_changed(tmp_path, data):
    number = st.integers(0, 5)
    whole = Profile(string_table=["", "inuse_objects", "inuse_space", "alloc_objects", "alloc_space", "numalloc: lost records x"])
    for kind in data.draw(st.lists(number, max_size=4)):
        whole.sample_type.add(type=kind, unit=5)
    for _ in range(data.draw(number)):
        whole.location.add(id=data.draw(number), mapping_id=data.draw(number)).line.add(function_id=data.draw(number))
        whole.function.add(id=data.draw(number), name=data.draw(st.integers(-1, 9)), filename=data.draw(number))
        whole.mapping.add(id=data.draw(number), filename=data.draw(number), build_id=data.draw(st.integers(-1, 9)))
        whole.sample.add(location_id=[data.draw(number)], value=[1] * len(whole.sample_type)).label.add(
            key=data.draw(number), str=data.draw(number)
        )
    whole.comment.extend(data.draw(st.lists(st.integers(0, 9), max_size=2)))
    check(READERS["profile"], tmp_path, whole.SerializeToString())


@few
@given(
    names=st.binary(max_size=80),
    numbers=st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 4), min_size=8, max_size=8),
    tail=st.binary(max_size=200),
)
def test_any_page_of_statistics_is_a_page_or_none(names, numbers, tail):
    header, nodes, node_bytes, classes, class_bytes, process_bytes, length, _ = numbers
    content = page.HEADER.pack(
        page.MAGIC, page.VERSION, header or page.HEADER.size, nodes, node_bytes, classes, class_bytes, 7, 2, 9, process_bytes
    )
    assert page._parsed(content + struct.pack("=I", length or len(names)) + names + tail, 7) is None or nodes < 5


@few
@given(report=st.text(max_size=100) | st.from_regex(r"numalloc:     #\d+ 0x[0-9a-f]+ /[a-z/]{0,9}\+0x[0-9a-f]{1,40}", fullmatch=True))
def test_any_report_is_shown(report):
    assert len(list(named(report.splitlines()))) == len(report.splitlines())


def test_a_process_may_use_the_cpus_of_all_its_threads(tmp_path):
    """numalloc binds each thread to a node."""
    root = machine(tmp_path, node(0, "0-1", distance="10 20"), node(1, "2-3", distance="20 10"))
    for thread, mask in ((7, "0-1"), (8, "2-3")):
        folder = root / f"proc/7/task/{thread}"
        folder.mkdir(parents=True)
        (folder / "status").write_text(f"Cpus_allowed_list:\t{mask}\n")
    (root / "proc/7/status").write_text("Cpus_allowed_list:\t0-1\n")
    assert process.read(Files(root), "7").cpus == [0, 1, 2, 3]


@few
@given(data=st.data())
def test_any_machine_is_described(tmp_path_factory, data):
    root = machine(tmp_path_factory.mktemp("machine"), node(0, "0-1", distance="10 20"), node(1, "2-3", distance="20 10"))
    files = sorted(path for path in root.rglob("*") if path.is_file())
    for path in data.draw(st.lists(st.sampled_from(files), min_size=1, max_size=4)):
        path.write_bytes(
            data.draw(st.binary(max_size=20) | st.text(alphabet="0123456789-,: kBNodeMemTotal\n", max_size=30).map(str.encode))
        )
    found = facts.read(Files(root))
    assert json.dumps(found.as_json())
    text.show(found, Console(file=io.StringIO()))
