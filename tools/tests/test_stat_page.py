"""The library's page of statistics, as `numalloc stat` reads it: written by the tests, and by the library."""

import contextlib
import json
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from limits import LIMIT, children_named, wait_until
from numalloc_tools.observe.page import sees_all_processes
from numalloc_tools.preload import our_library
from numalloc_tools.problem import Problem
from observed import CLASS_NAMES, COMMAND, MIB, NODE_NAMES, PROCESS_NAMES, WrittenPage, numalloc, program, start_of, stat
from terminal import Terminal, plain

# Each of them removes pages that others left behind, and makes some: one after the other.
pytestmark = pytest.mark.xdist_group("statistics-pages")


def test_page_is_read():
    with program() as process, WrittenPage(process.pid, start_of(process.pid), extra=16).written():
        seen = stat(process.pid)
        text = numalloc("stat", process.pid).stdout
    assert seen["under_numalloc"] is True
    assert seen["numalloc"]["nodes"] == [
        {"node": 0, "small_live": 4096, "remote_frees": 7, "free_bytes": 8192},
        {"node": -2, "small_live": 0, "remote_frees": 0, "free_bytes": 0},
    ]
    assert seen["numalloc"]["classes"] == [
        {"node": 0, "class_bytes": 64, "live": 64, "lists": 3, "ring": 5},
        {"node": -2, "class_bytes": 32768, "live": 0, "lists": 0, "ring": 0},
    ]
    assert ", under numalloc" in text
    assert "remote frees" in text and "4.0 KiB" in text
    assert "size classes" in text


@pytest.mark.parametrize(
    "change",
    [
        {"start": 1},
        {"magic": b"NUMASTAX"},
        {"version": 1},
        {"version": 3},
        {"sequence": 3},
        {"updated_at": 0},
        {"classes": [(9, 64, [1, 1, 1])]},
        {"classes": [(0, 64, [1, 1, 1])] * 2},
        {"extra": -8},
        {"names": (["small_live", "small_live", "spills"], CLASS_NAMES, PROCESS_NAMES)},
        {"names": (["\x1b[2Jx", "small live", "spills"], CLASS_NAMES, PROCESS_NAMES)},
        {"names": (["x" * 65, "small_live", "spills"], CLASS_NAMES, PROCESS_NAMES)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_page_that_does_not_fit_is_ignored(change):
    with program() as process:
        # Of another start it is a page that an earlier process left; it is also removed.
        with WrittenPage(process.pid, **({"start": start_of(process.pid)} | change)).written() as page:
            assert stat(process.pid)["numalloc"] is None
            assert page.path.exists() == ("start" not in change or not sees_all_processes())


def test_page_with_absurd_counts_is_ignored_at_once():
    """It may be anybody's work, and root looks at everybody's."""
    with program() as process, WrittenPage(process.pid, start_of(process.pid)).written() as page:
        whole = bytearray(page.content())
        for records_at in (16, 24):
            for count, size in ((0xFFFFFFFF, 0), (0xFFFFFFFF, 0xFFFFFFFF), (3, 0xFFFFFFF8)):
                hostile = whole.copy()
                struct.pack_into("=II", hostile, records_at, count, size)
                page.path.write_bytes(hostile)
                assert stat(process.pid)["numalloc"] is None, (records_at, count, size)


def test_refused_calls_are_shown_with_their_reason():
    names = (NODE_NAMES, CLASS_NAMES, ["nodes", "refused_binding", "refused_binding_error", "refused_moves", "refused_moves_error"])
    with program() as process, WrittenPage(process.pid, start_of(process.pid), names=names, process=[2, 1234, 1, 0, 0]).written():
        text = numalloc("stat", process.pid).stdout
        seen = stat(process.pid)["numalloc"]["process"]
    assert "  refused     binding 1,234 times (EPERM)\n" in text
    assert seen == dict(zip(names[2], [2, 1234, 1, 0, 0]))


@pytest.mark.full("a terminal, and twenty seconds of patience")
@pytest.mark.parametrize(("width", "shown"), [(80, ["least", "most"]), (160, [f"node {node}" for node in range(8)])])
def test_nodes_have_a_column_each_where_there_is_room(width, shown):
    nodes = {node: [node << 20, 10_000_000 * node, 1023 << 40] for node in range(8)}
    with program() as process, WrittenPage(process.pid, start_of(process.pid), nodes=nodes, classes=[]).written():
        terminal = Terminal([*COMMAND, "stat", str(process.pid), "--watch", "0.1", "--count", "2"], rows=90, columns=width)
        try:
            assert terminal.ended() == 0
            text = plain(terminal.said)
        finally:
            terminal.close()
    columns = next(line for line in text.splitlines()[::-1] if "all nodes" in line)
    assert [" ".join(column.split()) for column in columns.split("  ") if column.strip()] == ["all nodes", *shown, "a second"]
    frees = next(line for line in text.splitlines()[::-1] if "remote frees" in line)
    assert "…" not in text and "280,000,000" in frees


@pytest.fixture
def container() -> list[str]:
    """Words that run a command in a PID namespace of its own, with the same /dev/shm."""
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True, timeout=LIMIT).returncode:
        pytest.skip("no PID namespace can be made here")
    return unshare


@pytest.mark.full("writes the page of a process 1, whose name another suite has too")
def test_page_of_a_process_in_a_container_has_the_number_that_it_has_there(container):
    waiting = subprocess.Popen([*container, "sleep", "60"])
    try:
        wait_until(lambda: children_named(waiting.pid, "sleep"))
        [pid] = [one.pid for one in children_named(waiting.pid, "sleep")]
        with WrittenPage(1, start_of(pid)).written():
            assert stat(pid)["numalloc"]["nodes"][0]["small_live"] == 4096
    finally:
        waiting.kill()
        waiting.wait(timeout=LIMIT)


def test_container_leaves_pages_alone(container):
    """It cannot see that the process lives. Where it can be seen, so that no test beside this one takes the page away."""
    with program() as process, WrittenPage(process.pid, start_of(process.pid)).written() as page:
        shell = f'{COMMAND[0]} -c "{COMMAND[2]}" stat $$ --json'
        done = subprocess.run([*container, "sh", "-c", f"{shell}; exit $?"], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        assert page.path.exists()


def test_page_with_the_start_of_another_living_process_is_ignored_and_left():
    with program() as process, WrittenPage(process.pid, start_of(os.getpid())).written() as page:
        assert stat(process.pid)["numalloc"] is None
        assert page.path.exists()


def test_page_is_cut_short():
    with program() as process, WrittenPage(process.pid, start_of(process.pid)).written() as page:
        whole = page.content()
        for length in (0, 8, 63, 66, 90, len(whole) - 1):
            page.path.write_bytes(whole[:length])
            assert stat(process.pid)["numalloc"] is None, length


def test_page_behind_a_link_or_of_another_user_is_ignored(tmp_path):
    with program() as process:
        page = WrittenPage(process.pid, start_of(process.pid))
        (tmp_path / "page").write_bytes(page.content())
        page.path.symlink_to(tmp_path / "page")
        try:
            assert stat(process.pid)["numalloc"] is None
        finally:
            page.path.unlink()
        if os.geteuid() == 0:
            with page.written():
                os.chown(page.path, 65534, 65534)
                assert stat(process.pid)["numalloc"] is None


@pytest.mark.full("a writer that is preempted in the middle is waited for only so long")
def test_page_that_is_being_written_is_waited_for():
    with program() as process:
        page = WrittenPage(process.pid, start_of(process.pid))
        with page.written():
            writer = subprocess.Popen([COMMAND[0], "-c", _WRITER, str(page.path)], stdout=subprocess.PIPE)
            try:
                writer.stdout.readline()
                for _ in range(3):
                    values = stat(process.pid)["numalloc"]["nodes"][0]
                    assert values["small_live"] == values["remote_frees"] == values["free_bytes"]
            finally:
                writer.kill()
                writer.communicate(timeout=LIMIT)


# Writes the first record's figures one by one, all to the same value, with the sequence odd meanwhile.
_WRITER = """
import mmap, struct, sys
with open(sys.argv[1], 'r+b') as file:
    page = mmap.mmap(file.fileno(), 0)
names = struct.unpack_from('=I', page, 64)[0]
at = (68 + names + 7 & ~7) + struct.unpack_from('=I', page, 56)[0] + 8
for turn in range(1, 1 << 40):
    struct.pack_into('=Q', page, 40, 2 * turn + 1)
    for place in range(3):
        struct.pack_into('=Q', page, at + 8 * place, turn)
    struct.pack_into('=Q', page, 40, 2 * turn + 2)
    if turn == 1000: print(flush=True)
    if turn > 1000:
        for _ in range(2000): pass
"""


_ALLOCATING = """
import signal, sys, time

signal.signal(signal.SIGTERM, lambda *_: sys.exit())
held = [bytes(3000) for _ in range(20000)]
big = bytearray(10 << 20)
print(flush=True)
while True:
    more = [bytes(2000 + size) for size in range(2000)]
    time.sleep(0.02)
"""


@contextlib.contextmanager
def allocating() -> Iterator[subprocess.Popen]:
    """A program under the real library, which writes its page."""
    try:
        library = our_library(None)
    except Problem as problem:
        pytest.skip(str(problem))
    environment = os.environ | {"LD_PRELOAD": str(library), "NUMALLOC_STATISTICS_PAGE": "1"}
    process = subprocess.Popen([COMMAND[0], "-c", _ALLOCATING], stdout=subprocess.PIPE, env=environment)
    try:
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate(timeout=LIMIT)


def test_page_of_the_real_library_is_read_and_goes_with_the_program():
    found = []

    def has_been_written() -> bool:
        """The library writes its page about once a second."""
        if library := stat(process.pid)["numalloc"]:
            found.append(library)
        return bool(library) and sum(node["big_bytes"] for node in library["nodes"]) >= 10 * MIB

    with allocating() as process:
        page = Path(f"/dev/shm/numalloc-{os.geteuid()}-{process.pid}")
        wait_until(has_been_written)
        assert page.exists()
        process.terminate()  # which it takes for its exit
        process.wait(timeout=LIMIT)
        assert not page.exists()
    library = found[-1]
    assert library["process"]["nodes"] >= 1 and library["process"]["refused_discards_error"] == 0
    assert sum(node["small_live"] for node in library["nodes"]) > 20000 * 3000
    assert max(library["classes"], key=lambda one: one["live"] * one["class_bytes"])["class_bytes"] in range(3000, 3600)


@pytest.mark.full("the library has to write its page within a second")
def test_page_of_the_real_library_has_rates():
    with allocating() as process:
        watched = numalloc("stat", process.pid, "--json", "--watch", "1", "--count", "2")
    seen = json.loads(watched.stdout.splitlines()[1])
    assert seen["numalloc"]["age_seconds"] < 5
    assert seen["rates"]["nodes"][0]["fetched_objects_per_second"] > 0


def test_pages_of_processes_that_were_killed_are_removed_and_others_stay():
    with program() as process:
        # No kernel gives numbers as high, and no other suite takes the same.
        gone = WrittenPage((1 << 30) + 2 * process.pid, 1)
        # As a container's process looks that shares /dev/shm.
        living = WrittenPage((1 << 30) + 2 * process.pid + 1, start_of(process.pid))
        with gone.written(), living.written():
            stat(process.pid)
            assert gone.path.exists() == (not sees_all_processes())
            assert living.path.exists()
