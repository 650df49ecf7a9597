"""The parts of the lab that need no virtual machine."""

import subprocess
from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools.guest import console, distances, values
from numalloc_tools.guest import fetch as fetch_command
from numalloc_tools.guest.batch import Job, _script, _Split
from numalloc_tools.guest.machine import Machine, Node, build_machine
from numalloc_tools.guest.vm import _Marked
from numalloc_tools.problem import Problem


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_mark_is_found_however_the_stream_is_cut(step):
    text = b"one\nend-o\nend-of-itend-of-stream 17\nnever seen"
    seen = bytearray()
    stream = _Marked("end-of-stream", seen.extend)
    for at in range(0, len(text), step):
        stream.take(text[at : at + step])
    stream.finish()
    assert (bytes(seen), stream.status) == (b"one\nend-o\nend-of-it", 17)


@pytest.mark.parametrize("damaged", [b"", b"end-of-stream", b"end-of-stream 1", b"end-of-stream 17"])
def test_mark_that_lost_its_end_is_followed_by_another(damaged):
    seen = bytearray()
    stream = _Marked("end-of-stream", seen.extend)
    for chunk in (b"one\n", damaged, b"end-of-stream 17\n"):
        stream.take(chunk)
    assert (bytes(seen), stream.status) == (b"one\n", 17)


def test_what_looks_like_a_mark_is_given_out_when_the_machine_stops():
    seen = bytearray()
    stream = _Marked("end-of-stream", seen.extend)
    stream.take(b"the end-of-str")
    stream.finish()
    assert (bytes(seen), stream.status) == (b"the end-of-str", None)


def end_of(*words) -> bytes:
    """A mark as the guest writes it: number, name, status and oom kills, all twice."""
    mark = " ".join(map(str, words))
    return f"@@end {mark} = {mark}@@\n".encode()


def test_output_of_jobs_is_told_apart():
    split = _Split()
    split.take(b"a\nb\n\n" + end_of(1, "first", 0, 0) + b"c")
    assert list(split.parts) == ["first"]
    split.take(b"\n" + end_of(2, "second", 137, 1))
    assert split.parts == {"first": ("a\nb", 0, 0), "second": ("c", 137, 1)}


_MARK = end_of(1, "first", 137, 1)


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize(
    "marks",
    [
        pytest.param(_MARK * 3, id="whole"),
        pytest.param(_MARK[:9] + b"\n" + _MARK, id="cut-short"),
        pytest.param(_MARK[:9] + _MARK + _MARK[-12:], id="one-line"),
        pytest.param(_MARK[4:] + _MARK, id="no-beginning"),
        pytest.param(_MARK.replace(b"137", b"13", 1) + _MARK, id="digit-lost"),
        pytest.param(_MARK.replace(b"\n", b"") * 2 + _MARK, id="no-line-ends"),
        pytest.param(_MARK + _MARK[:20] + b"\n" + _MARK, id="damaged-later"),
    ],
)
def test_end_of_a_job_is_found_where_bytes_of_its_marks_are_lost(marks, step):
    split = _Split()
    text = b"a\n\nb\n" + marks + b"\nc\n" + end_of(2, "second", 0, 0)
    for at in range(0, len(text), step):
        split.take(text[at : at + step])
    assert split.parts == {"first": ("a\n\nb", 137, 1), "second": ("c", 0, 0)}


def test_last_line_that_lost_its_end_stays():
    split = _Split()
    split.take(b"a\nb" + _MARK[:9] + b"\n" + _MARK)
    assert split.parts == {"first": ("a\nb", 137, 1)}


def test_guest_writes_the_marks_that_are_looked_for(tmp_path):
    """The shell script itself, with jobs that need no guest."""
    jobs = [Job("one", ["/bin/echo", "said"]), Job("two's", ["/bin/false"])]
    script = _script(jobs, {"/bin/echo": "/bin/echo", "/bin/false": "/bin/false"}).replace("/lab/bin/", "")
    done = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT)
    said, complained = _Split(), _Split()
    said.take(done.stdout)
    complained.take(done.stderr)
    assert said.parts == {"@boot": ("", 0, 0), "one": ("said", 0, 0), "two's": ("", 1, 0)}
    assert complained.parts == {"one": ("", 0, 0), "two's": ("", 1, 0)}


def test_what_is_fetched_is_tried_three_times(capsys):
    answers = iter([Problem("no network"), Problem("still none")])

    def fetch() -> Path:
        if problem := next(answers, None):
            raise problem
        return Path("found")

    assert fetch_command.tried(fetch, 0) == Path("found")
    assert "no network; trying again" in capsys.readouterr().err
    answers = iter([Problem("no network")] * 3)
    with pytest.raises(Problem, match="no network"):
        fetch_command.tried(fetch, 0)


def test_console_says_what_happened():
    text = (
        b"[    1.0] Linux version 6.1\r\n"
        b"[   14.5] Out of memory: Killed process 228 (full_node) total-vm:1kB\r\n"
        b"[   15.0] BUG: kernel NULL pointer dereference, address: 0000000000000008\r\n"
        b"[   16.0] Kernel panic - not syncing: Fatal exception\r\n"
    )
    assert console.findings(text) == [
        "the guest ran out of memory and killed process 228 (full_node)",
        "the guest's kernel reports: BUG: kernel NULL pointer dereference, address: 0000000000000008",
        "the guest's kernel panicked: Fatal exception",
    ]
    assert console.end(text, 1) == "Kernel panic - not syncing: Fatal exception"


def test_distances():
    assert distances.matrix("twogroups", 4) == [[10, 21, 31, 31], [21, 10, 31, 31], [31, 31, 10, 21], [31, 31, 21, 10]]
    assert distances.matrix("ladder", 3)[0] == [10, 20, 30]
    assert distances.matrix("ladder", 32)[0][31] <= distances.FARTHEST
    assert distances.matrix("full", 2) == [[10, 20], [20, 10]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("10 20\n20 10\n20 20", "2 lines of 2"),
        ("10 20\n20 x", "whole numbers"),
        ("10 20\n300 10", "300 from node 1 to node 0"),
        ("11 20\n20 10", "11 from node 0 to node 0"),
    ],
)
def test_bad_distance_files(tmp_path, text, says):
    (tmp_path / "far").write_text(text)
    with pytest.raises(Problem, match=says):
        distances.matrix(str(tmp_path / "far"), 2)


def test_values():
    assert values.size("512M", "x") == 512 << 20
    assert values.size("2GiB", "x") == 2 << 30
    assert values.number_list("0-2,5", "x", 6) == [0, 1, 2, 5]
    assert values.per_node("3", 2, "x", values.count) == [3, 3]
    assert values.per_node("3,0", 2, "x", values.count) == [3, 0]


def test_every_node_keeps_a_place_for_a_cpu():
    machine = build_machine(4, "2,3,1,2", "256M", "full", memory_only="2", absent="3")
    words = machine.qemu_arguments("max,-erms")
    places = [word for word in words if word.startswith("cpu,node-id=")]
    plugged = [word for word in words if word.startswith("max-x86_64-cpu")]
    assert [sum(f"node-id={node}," in place for place in places) for node in range(4)] == [3, 3, 3, 3]
    assert len(plugged) == machine.cpus - 1 == 4
    assert all(word.endswith(",erms=off") for word in plugged)
    assert [f"nodeid={node}" in " ".join(words) for node in range(4)] == [True] * 4
    assert not any("memory3" in word for word in words)


def test_many_cpus_get_a_socket_each():
    """32 nodes with 8 CPUs, one less in the last: APIC ids of 8-core sockets would go beyond 254."""
    machine = build_machine(32, ",".join(["8"] * 31 + ["7"]), "64M", "full")
    words = machine.qemu_arguments("max")
    assert machine.cpus == 255
    assert "1,maxcpus=255,sockets=255,cores=1,threads=1" in words


@pytest.mark.parametrize(
    ("cpus", "possible"),
    [((2, 2), 4), ((3, 3), 9), ((2, 0, 2), 9), ((4, 4), 8), ((5, 5), 10), ((2, 2, 2, 2, 2), 10)],
)
def test_few_cpus_with_gaps_are_not_addressed_by_bits(cpus, possible):
    nodes = tuple(Node(count, 256 << 20) for count in cpus)
    rows = tuple(tuple(row) for row in distances.matrix("full", len(nodes)))
    assert Machine(nodes, rows).possible_cpus == possible


def test_aarch64_counts_its_cpus_through():
    machine = build_machine(4, "2,3,1,2", "256M", "full", memory_only="2", cpu_only="3", arch="aarch64")
    words = machine.qemu_arguments("max")
    nodes = [word for word in words if word.startswith("node,nodeid=")]
    assert nodes == [
        "node,nodeid=0,memdev=memory0,cpus=0-1",
        "node,nodeid=1,memdev=memory1,cpus=2-4",
        "node,nodeid=2,memdev=memory2",
        "node,nodeid=3,cpus=5-6",
    ]
    assert words[words.index("-smp") + 1] == "7"


def test_aarch64_has_fewer_nodes_and_no_gaps():
    with pytest.raises(Problem, match="2 to 16"):
        build_machine(17, "1", "64M", "full", arch="aarch64")
    with pytest.raises(Problem, match="--absent"):
        build_machine(4, "1", "64M", "full", absent="2", arch="aarch64")
    with pytest.raises(Problem, match="x86_64, aarch64"):
        build_machine(4, "1", "64M", "full", arch="vax")
