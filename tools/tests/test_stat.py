"""`numalloc stat`: what it says of real programs, and what it makes of the kernel's texts."""

import dataclasses
import io
import json
import os
import signal
import subprocess

import psutil
import pytest
from limits import LIMIT, wait_until
from numalloc_tools.machine.lists import numbers
from numalloc_tools.machine.online import Machine, machine
from numalloc_tools.observe import numa_maps
from numalloc_tools.observe.as_json import as_json
from numalloc_tools.observe.detail import detail
from numalloc_tools.observe.model import Memory, Moment, NodeMemory
from numalloc_tools.observe.process import Gone, moment
from numalloc_tools.observe.rates import rates
from numalloc_tools.observe.remote import remote_share
from numalloc_tools.observe.top_view import Row, view
from observed import COMMAND, MIB, numalloc, program, stat
from rich.console import Console

# Each of them removes pages that others left behind, and makes some: one after the other.
pytestmark = pytest.mark.xdist_group("statistics-pages")

ONE_NODE = Machine((0,), {})


@pytest.mark.full("asserts resident memory")
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


@pytest.mark.full("the kernel gives huge pages where it has some")
def test_huge_pages_are_seen():
    if "[never]" in open("/sys/kernel/mm/transparent_hugepage/enabled").read():
        pytest.skip("the kernel has no huge pages to give")
    advised = "import mmap; huge = mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE); huge.madvise(mmap.MADV_HUGEPAGE); "
    with program(0, advised + "huge[::4096] = b'x' * (16 << 10); print(1, flush=True); input()") as process:
        process.stdout.readline()
        seen = stat(process.pid)
    assert seen["huge_bytes"] >= 48 * MIB
    assert seen["huge_share"] == pytest.approx(seen["huge_bytes"] / (seen["anonymous_bytes"] + seen["shared_bytes"]), abs=0.001)


def test_text_agrees_with_the_data():
    with program(32) as process:
        done = numalloc("stat", process.pid)
    assert done.returncode == 0, done.stderr
    assert f"process {process.pid}: 1 thread," in done.stdout
    for word in ("resident", "huge pages", "remote", "policies", "own memory"):
        assert word in done.stdout
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 120


@pytest.mark.full("asserts page faults a second")
def test_watch_shows_rates_and_ends_with_the_program():
    faulting = "import mmap, time\nwhile True: mmap.mmap(-1, 4 << 20)[::4096] = b'x' * 1024; time.sleep(0.01)"
    process = subprocess.Popen([COMMAND[0], "-c", faulting])
    try:
        watching = subprocess.Popen(
            [*COMMAND, "stat", str(process.pid), "--json", "--watch", "0.3"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        lines = [json.loads(watching.stdout.readline()) for _ in range(3)]
    finally:
        process.kill()
        process.wait(timeout=LIMIT)
    rest, errors = watching.communicate(timeout=LIMIT)
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


def test_interrupt_ends_it_silently():
    with program() as process:
        watching = subprocess.Popen(
            [*COMMAND, "stat", str(process.pid), "--json", "--watch", "10"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # ignored in the background
        )
        watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate(timeout=LIMIT)
    assert (watching.returncode, errors) == (130, "")


def test_reader_that_leaves_is_an_ordinary_end():
    with program() as process:
        line = f"{COMMAND[0]} -c '{COMMAND[2]}' stat {process.pid} --json --watch 0.1 | head -n 1"
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=LIMIT)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["none"], "PID: 'none' is not a process"),
        (["0"], "PID: '0' is not a process"),
        (["2147483646"], "process 2147483646 does not exist"),
        ([str(os.getpid()), "--watch", "0"], "--watch: 0 is out of range"),
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


def test_kernel_thread_is_refused():
    if not os.path.exists("/proc/2/stat") or " 0 0 0 " not in open("/proc/2/stat").read():
        pytest.skip("no threads of the kernel are to be seen here")
    done = numalloc("stat", "2")
    assert done.returncode == 2
    assert "is a kernel thread" in done.stderr


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
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2, done.stderr
    assert done.stderr == (
        f"numalloc: process {process.pid} belongs to root, and the kernel does not show you its memory; "
        "accepted: your own processes, or any process as root\n"
    )


def test_ended_process_is_gone_before_its_parent_waits():
    child = subprocess.Popen(["true"])
    wait_until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    with pytest.raises(Gone):
        moment(child.pid, machine())
    child.wait(timeout=LIMIT)


# ---- The kernel's texts


def test_several_processes_are_shown_one_after_the_other():
    with program() as first, program() as second:
        pids = [first.pid, second.pid]
        done = numalloc("stat", *pids, pids[0])
        assert done.returncode == 0, done.stderr
        heads = [line for line in done.stdout.splitlines() if ", process " in line]
        assert [int(line.split(", process ")[1].split(":")[0]) for line in heads] == pids
        assert done.stdout.count(f"\n\n{heads[1]}\n") == 1
        done = numalloc("stat", *pids, "--json", "--watch", "0.05", "--count", "2")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert [line["pid"] for line in lines] == pids * 2
        assert [line["rates"] is None for line in lines] == [True, True, False, False]
        done = numalloc("stat", pids[0], 2**22 + 1)
        assert (done.returncode, done.stdout) == (2, "") and "does not exist" in done.stderr


def test_watched_processes_end_one_by_one():
    with program() as first, program() as second:
        words = [*COMMAND, "stat", str(first.pid), str(second.pid), "--watch", "0.05", "--json"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for pid in (first.pid, second.pid):
            assert json.loads(process.stdout.readline())["pid"] == pid
        first.kill()
        first.wait(timeout=LIMIT)
        assert process.stderr.readline() == f"numalloc: process {first.pid} has ended\n"
        second.kill()
        second.wait(timeout=LIMIT)
        assert process.communicate(timeout=LIMIT)[1] == f"numalloc: process {second.pid} has ended\n"
        assert process.returncode == 0


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
        "bind:1": 512 * page,
        "default": 352 * page,
        "prefer:3": 8 * page,
        "bind=static:0-1": 6 * page,
        "prefer (many):0,3": 4 * page,
        "weighted interleave:0-2": 3 * page,
    }
    assert found.under_numalloc


def test_library_of_another_name_is_not_numalloc():
    assert not numa_maps.parse("7f00 default file=/x/libnumalloc.so.txt mapped=2 N0=2\n", 4096).under_numalloc


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "jemalloc"),
        ("/usr/lib/libtcmalloc_minimal.so.4.5.9", "tcmalloc"),
        ("/opt/app/libmimalloc-secure.so.2.1\\040(deleted)", "mimalloc"),
        ("/venv/x.libs/libjemalloc-5e3fa1.so.2", "jemalloc"),
        ("/usr/lib/libtbbmalloc_proxy.so.2", "tbbmalloc"),
        ("/usr/lib/libtbbmalloc.so.2", ""),
        ("/usr/lib/libjemalloc.so.2.txt", ""),
        ("/libjemalloc.so/data", ""),
    ],
)
def test_other_mallocs_are_named(file, named):
    found = numa_maps.parse(f"7f00 default file={file} mapped=2 N0=2\n", 4096)
    assert (found.other_malloc, found.under_numalloc) == (named, False)
    seen = Moment(1, "x", 0, 0, 0, False, Memory(1, 1, 1, 0, 0, 0, 0, None), {}, {}, (), 0, 0, 0, None, found.other_malloc)
    assert as_json(seen)["malloc"] == (named or None)
    console = Console(file=io.StringIO(), width=200)
    console.print(detail(seen, None, None, 200), view([Row(seen, None, None)] * 2, "memory", (0,), console, live=False))
    said = console.file.getvalue()
    assert (f", {named} is loaded\n" in said) == bool(named)
    assert said.count(f" {named or '-'} ") >= 2
    assert dataclasses.replace(seen, under_numalloc=True).malloc == "numalloc"


def test_lists_of_the_kernel():
    assert numbers("0-2,5\n") == [0, 1, 2, 5]
    assert numbers("\n") == []


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


def test_remote_share_of_an_interval_counts_threads_that_ran_in_it(tmp_path):
    text = "7f00 default anon=100 N0=100 kernelpagesize_kB=4\n"
    before = moment(77, TWO_PER_NODE, made_up(tmp_path / "1", {77: (0, 900), 78: (2, 100)}, text))
    after = moment(77, TWO_PER_NODE, made_up(tmp_path / "2", {77: (0, 900), 78: (2, 400)}, text))
    assert remote_share(after).alike == pytest.approx(400 / 1300)
    assert remote_share(after, before).alike == pytest.approx(1.0)
    assert rates(before, after).node_cpus[0] == 0.0


def test_kernel_without_numa_maps_has_no_shares_of_several_nodes(tmp_path):
    proc = made_up(tmp_path, {77: (0, 1)}, "")
    (proc / "77" / "numa_maps").unlink()
    assert moment(77, TWO_PER_NODE, proc).nodes is None
    assert moment(77, ONE_NODE, proc).nodes == {0: NodeMemory(300 * 1024, 100 * 1024)}


# Its state is that of a running process until its memory has gone.
def test_a_process_without_memory_that_is_no_kernel_thread_is_ending(tmp_path):
    own = made_up(tmp_path, {77: (0, 1)}, "") / "77"
    (own / "status").write_text("Name:\tx\n")
    with pytest.raises(Gone):
        moment(77, ONE_NODE, tmp_path)
