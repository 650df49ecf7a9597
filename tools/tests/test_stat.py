"""`numalloc stat`: what it says of real programs, and what it makes of the kernel's texts and the library's page."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from numalloc_tools.observe import numa_maps
from numalloc_tools.observe.machine import Machine, machine, numbers
from numalloc_tools.observe.model import NodeMemory
from numalloc_tools.observe.page import sees_all_processes
from numalloc_tools.observe.process import Gone, moment
from numalloc_tools.observe.rates import rates
from numalloc_tools.observe.remote import remote_share
from numalloc_tools.preload import our_library
from numalloc_tools.problem import Problem
from observed import COMMAND, MIB, WrittenPage, numalloc, program, start_of
from terminal import Terminal, plain

ONE_NODE = Machine((0,), {})


def stat(pid: int, *arguments) -> dict:
    done = numalloc("stat", pid, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_memory_of_a_program_is_seen_on_its_nodes():
    with program(96) as process:
        seen = stat(process.pid)
    assert seen["pid"] == process.pid
    assert seen["name"].startswith("python")
    assert 96 * MIB <= seen["anonymous_bytes"] < 140 * MIB
    assert 96 * MIB <= sum(node["own_bytes"] for node in seen["nodes"]) < 140 * MIB
    assert seen["resident_bytes"] <= seen["peak_bytes"]
    assert seen["minor_faults"] > 500
    assert [thread["tid"] for thread in seen["threads"]] == [process.pid]
    assert seen["numalloc"] is None and seen["under_numalloc"] is False
    assert "default" in [one["policy"] for one in seen["policies"]]


def test_huge_pages_are_seen():
    if "[never]" in open("/sys/kernel/mm/transparent_hugepage/enabled").read():
        pytest.skip("the kernel has no huge pages to give")
    advised = "import mmap; huge = mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE); huge.madvise(mmap.MADV_HUGEPAGE); huge[::4096] = b'x' * len(huge[::4096]); "
    with program(0, advised + "print(1, flush=True); input()") as process:
        process.stdout.readline()
        seen = stat(process.pid)
    assert seen["huge_bytes"] >= 48 * MIB
    assert seen["huge_share"] == pytest.approx(seen["huge_bytes"] / (seen["anonymous_bytes"] + seen["shared_bytes"]), abs=0.001)


def test_text_says_the_same_as_the_data():
    with program(32) as process:
        done = numalloc("stat", process.pid)
    assert done.returncode == 0, done.stderr
    assert f"process {process.pid}: 1 thread," in done.stdout
    for word in ("resident", "huge pages", "remote", "policies", "own memory"):
        assert word in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 120


def test_watch_counts_what_happens_a_second_and_ends_with_the_program():
    faulting = "import mmap, time\nwhile True: mmap.mmap(-1, 4 << 20)[::4096] = b'x' * 1024; time.sleep(0.01)"
    process = subprocess.Popen([COMMAND[0], "-c", faulting])
    try:
        watching = subprocess.Popen(
            [*COMMAND, "stat", str(process.pid), "--json", "--watch", "0.3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        lines = [json.loads(watching.stdout.readline()) for _ in range(3)]
    finally:
        process.kill()
        process.wait()
    rest, errors = watching.communicate(timeout=30)
    assert watching.returncode == 0
    assert errors == f"numalloc: process {process.pid} has ended\n"
    assert lines[0]["rates"] is None
    for line in lines[1:]:
        assert line["rates"]["minor_faults_per_second"] > 100
        assert 0.25 < line["rates"]["seconds"] < 5
    assert lines[2]["minor_faults"] > lines[1]["minor_faults"]


def test_watch_ends_after_its_count():
    with program() as process:
        done = numalloc("stat", process.pid, "--watch", "0.1", "--count", "2", "--json")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2


def test_interrupt_ends_it_without_a_word():
    with program() as process:
        watching = subprocess.Popen(
            [*COMMAND, "stat", str(process.pid), "--json", "--watch", "10"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # ignored where tests run in the background
        )  # fmt: skip
        watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate(timeout=30)
    assert (watching.returncode, errors) == (130, "")


def test_reader_that_leaves_is_an_ordinary_end():
    with program() as process:
        line = f"{COMMAND[0]} -c '{COMMAND[2]}' stat {process.pid} --json --watch 0.1 | head -n 1"
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=30)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["none"], "PID: 'none' is no process"),
        (["0"], "PID: '0' is no process"),
        (["2147483646"], "process 2147483646 does not exist"),
        ([str(os.getpid()), "--watch", "0"], "--watch: 0 is no such time"),
        ([str(os.getpid()), "--watch", "1", "--count", "0"], "--count: 0 is too few"),
        ([str(os.getpid()), "--count", "2"], "together with --watch"),
    ],
)
def test_errors_are_one_line_and_status_2(arguments, named):
    done = numalloc("stat", *arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_part_of_the_kernel_is_refused():
    if not os.path.exists("/proc/2/stat") or " 0 0 0 " not in open("/proc/2/stat").read():
        pytest.skip("no threads of the kernel are to be seen here")
    done = numalloc("stat", "2")
    assert done.returncode == 2
    assert "is a part of the kernel" in done.stderr


# Looks at itself first: somebody else may not be allowed to read the files of this Python, so they are loaded before.
_AS_SOMEBODY_ELSE = """
import os, sys
from numalloc_tools.cli import main
for pid in os.getpid(), sys.argv[1]:
    sys.argv = ["numalloc", "stat", str(pid)]
    try:
        main()
    except SystemExit as end:
        if end.code: raise
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""


def test_process_of_another_user_is_refused_in_one_line():
    if os.geteuid() != 0:
        pytest.skip("needs root, to be somebody else")
    with program() as process:  # root's
        command = [COMMAND[0], "-c", _AS_SOMEBODY_ELSE, str(process.pid)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stderr
    assert done.stderr == (
        f"numalloc: process {process.pid} belongs to root, and the kernel does not show you its memory; "
        "accepted: your own processes, or any as root\n"
    )


def test_ended_process_is_gone_while_its_parent_has_not_asked():
    child = subprocess.Popen(["true"])
    time.sleep(0.3)
    with pytest.raises(Gone):
        moment(child.pid, machine())
    child.wait()


# ---- The kernel's texts


def test_numa_maps_are_summed_by_node_policy_and_kind():
    text = (
        "55d0 default heap anon=300 dirty=300 N0=100 N2=200 kernelpagesize_kB=4\n"
        "7f00 bind:1 anon=512 dirty=512 N1=1 kernelpagesize_kB=2048\n"
        "7f10 default file=/lib/libc.so.6 mapped=50 N0=50 kernelpagesize_kB=4\n"
        "7f18 prefer:3 anon=8 N3=5 N2=3 kernelpagesize_kB=4\n"
        "7f20 weighted interleave:0-2 anon=3 N0=1 N1=1 N2=1 kernelpagesize_kB=4\n"
        "7f28 prefer (many):0,3 anon=4 N1=4 kernelpagesize_kB=4\n"
        "7f30 bind=static:0-1 file=/dev/shm/a\\040name dirty=6 N1=6 kernelpagesize_kB=4\n"
        "7f38 default file=/usr/lib/libnumalloc.so mapped=2 N0=2 kernelpagesize_kB=4\n"
        "7f40 default\n"
    )
    found = numa_maps.parse(text, 4096)
    page = 4096
    assert found.nodes == {
        0: NodeMemory(101 * page, 52 * page, 0),
        1: NodeMemory((512 + 1 + 4 + 6) * page, 0, 4 * page),
        2: NodeMemory(204 * page, 0, 3 * page),
        3: NodeMemory(5 * page, 0, 0),
    }
    assert found.policies == {
        "bind:1": 512 * page, "default": 352 * page, "prefer:3": 8 * page, "bind=static:0-1": 6 * page,
        "prefer (many):0,3": 4 * page, "weighted interleave:0-2": 3 * page,
    }  # fmt: skip
    assert found.under_numalloc


def test_library_of_another_name_is_not_numalloc():
    assert not numa_maps.parse("7f00 default file=/x/libnumalloc.so.txt mapped=2 N0=2\n", 4096).under_numalloc


def test_lists_of_the_kernel():
    assert numbers("0-2,5\n") == {0, 1, 2, 5}
    assert numbers("\n") == set()


def made_up(folder, nodes_of_threads: dict[int, tuple[int, int]], numa_maps_text: str):
    """A process in a folder that looks like /proc; threads are given as CPU and ticks."""
    own = folder / "77"
    fields = ["S", *["0"] * 40]
    fields[19] = "500"
    own.mkdir(parents=True)
    (own / "status").write_text("Name:\tx\nVmRSS:\t 400 kB\nRssAnon:\t 300 kB\nRssFile:\t 100 kB\n")
    (own / "numa_maps").write_text(numa_maps_text)
    (own / "stat").write_text(f"77 (a) b) {' '.join(fields)}\n")
    for tid, (cpu, ticks) in nodes_of_threads.items():
        (own / "task" / str(tid)).mkdir(parents=True)
        fields[36], fields[11] = str(cpu), str(ticks)
        (own / "task" / str(tid) / "stat").write_text(f"{tid} (x) {' '.join(fields)}\n")
    return folder


TWO_PER_NODE = Machine((0, 1, 2), {cpu: cpu // 2 for cpu in range(6)})


@pytest.mark.parametrize(
    ("threads", "least", "alike"),
    [
        ({77: (0, 100)}, 0.4, 0.4),  # 60 of 100 pages are on node 0, and so is the only thread
        ({77: (0, 100), 78: (3, 100)}, 0.0, 0.5),
        ({77: (0, 100), 78: (3, 300)}, 0.0, 0.55),
        ({77: (4, 100)}, 1.0, 1.0),
        ({77: (0, 0), 78: (4, 0)}, 0.4, 0.7),  # none ran: they count the same
    ],
)
def test_remote_share_is_weighed_by_cpu_time(tmp_path, threads, least, alike):
    seen = moment(77, TWO_PER_NODE, made_up(tmp_path, threads, "7f00 default anon=100 N0=60 N1=40 kernelpagesize_kB=4\n"))
    assert seen.name == "a) b"
    share = remote_share(seen)
    assert (share.least, share.alike) == (pytest.approx(least), pytest.approx(alike))


def test_remote_share_of_an_interval_counts_what_ran_in_it(tmp_path):
    text = "7f00 default anon=100 N0=100 kernelpagesize_kB=4\n"
    before = moment(77, TWO_PER_NODE, made_up(tmp_path / "1", {77: (0, 900), 78: (2, 100)}, text))
    after = moment(77, TWO_PER_NODE, made_up(tmp_path / "2", {77: (0, 900), 78: (2, 400)}, text))
    assert remote_share(after).alike == pytest.approx(400 / 1300)
    assert remote_share(after, before).alike == pytest.approx(1.0)
    assert rates(before, after).node_cpus[0] == 0.0


def test_kernel_without_numa_maps_says_nothing_of_several_nodes(tmp_path):
    proc = made_up(tmp_path, {77: (0, 1)}, "")
    (proc / "77" / "numa_maps").unlink()
    assert moment(77, TWO_PER_NODE, proc).nodes is None
    assert moment(77, ONE_NODE, proc).nodes == {0: NodeMemory(300 * 1024, 100 * 1024)}


# ---- The library's page


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
    [{"start": 1}, {"magic": b"NUMASTAX"}, {"version": 2}, {"sequence": 3}, {"updated_at": 0}, {"classes": [(9, 64, [1, 1, 1])]}],
    ids=lambda change: next(iter(change)),
)
def test_page_that_does_not_fit_is_ignored(change):
    with program() as process:
        # Of another start it is a page that an earlier process left; it is also removed.
        with WrittenPage(process.pid, **({"start": start_of(process.pid)} | change)).written() as page:
            assert stat(process.pid)["numalloc"] is None
            assert page.path.exists() == ("start" not in change or not sees_all_processes())


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
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("no PID namespace can be made here")
    return unshare


def test_page_of_a_process_in_a_container_has_the_number_that_it_has_there(container):
    waiting = subprocess.Popen([*container, "sleep", "60"])
    try:
        while not (children := psutil.Process(waiting.pid).children()) or children[0].name() != "sleep":
            time.sleep(0.05)
        pid = children[0].pid
        with WrittenPage(1, start_of(pid)).written():
            assert stat(pid)["numalloc"]["nodes"][0]["small_live"] == 4096
    finally:
        waiting.kill()
        waiting.wait()


def test_container_leaves_pages_alone(container):
    """It cannot see that the process lives."""
    with WrittenPage(2147483646, 1).written() as page:
        shell = f'{COMMAND[0]} -c "{COMMAND[2]}" stat $$ --json'
        done = subprocess.run([*container, "sh", "-c", f"{shell}; exit $?"], capture_output=True, text=True, timeout=60)
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
                writer.communicate()


# Writes the first record's figures one by one, all to the same value, with the sequence odd meanwhile.
_WRITER = """
import mmap, struct, sys
with open(sys.argv[1], 'r+b') as file:
    page = mmap.mmap(file.fileno(), 0)
names = struct.unpack_from('=I', page, 64)[0]
at = (68 + names + 7 & ~7) + 8
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


def test_page_of_the_real_library_is_read_and_goes_with_the_program():
    try:
        library = our_library(None)
    except Problem as problem:
        pytest.skip(str(problem))
    environment = os.environ | {"LD_PRELOAD": str(library), "NUMALLOC_STATISTICS_PAGE": "1"}
    process = subprocess.Popen([COMMAND[0], "-c", _ALLOCATING], stdout=subprocess.PIPE, env=environment)
    try:
        process.stdout.readline()
        page = Path(f"/dev/shm/numalloc-{os.geteuid()}-{process.pid}")
        watched = numalloc("stat", process.pid, "--json", "--watch", "1", "--count", "2")
        seen = json.loads(watched.stdout.splitlines()[1])
        assert page.exists()
        process.terminate()  # which it takes for its exit
        process.wait(timeout=30)
        assert not page.exists()
    finally:
        process.kill()
        process.communicate()
    nodes = seen["numalloc"]["nodes"]
    assert sum(node["small_live"] for node in nodes) > 20000 * 3000
    assert sum(node["big_bytes"] for node in nodes) >= 10 * MIB
    assert max(seen["numalloc"]["classes"], key=lambda one: one["live"] * one["class_bytes"])["class_bytes"] in range(3000, 3600)
    assert seen["numalloc"]["age_seconds"] < 5
    assert seen["rates"]["nodes"][0]["fetched_objects_per_second"] > 0


def test_pages_of_processes_that_were_killed_are_removed_and_others_stay():
    with program() as process:
        gone = WrittenPage(2147483646, 1)
        living = WrittenPage(2147483645, start_of(process.pid))  # as a container's process looks that shares /dev/shm
        with gone.written(), living.written():
            stat(process.pid)
            assert gone.path.exists() == (not sees_all_processes())
            assert living.path.exists()
