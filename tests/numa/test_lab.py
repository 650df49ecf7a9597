"""The lab itself: what goes in comes out, and whatever goes wrong is said in the way promised."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PATIENCE = 300  # seconds for what takes one or two on an idle host
NUMALLOC = str(Path(sys.executable).with_name("numalloc"))


def lab(*words, **options) -> subprocess.CompletedProcess:
    return subprocess.run([NUMALLOC, "lab", "run", *map(str, words)], capture_output=True, **options)


def test_streams_status_environment_and_files(tmp_path):
    data = os.urandom(100_000)  # no byte may be changed on the way, neither line ends nor zeros
    (tmp_path / "blob").write_bytes(data)
    (tmp_path / "input").write_bytes(b"from the input\n")
    tree = tmp_path / "tree"
    (tree / "a folder").mkdir(parents=True)
    (tree / "a folder" / "inside").write_text("inside\n")
    for name, target in (("nowhere", "/no/such/file"), ("circle", "circle"), ("good", "a folder/inside")):
        (tree / name).symlink_to(target)
    os.mkfifo(tree / "pipe")
    script = f"cat {tmp_path}/blob; cat >&2; echo $COLOUR >&2; pwd >&2; ls -1 tree >&2; cat tree/good >&2; exit 7"
    done = lab(
        "--file",
        tree,
        "--file",
        tmp_path / "blob",
        "--stdin",
        tmp_path / "input",
        "-e",
        "COLOUR=deep blue",
        "--",
        "sh",
        "-c",
        script,
        cwd=tmp_path,
    )
    assert done.stdout == data
    assert done.stderr.decode().splitlines() == [
        "from the input",
        "deep blue",
        str(tmp_path),
        "a folder",
        "circle",
        "good",
        "nowhere",
        "inside",
    ]
    assert done.returncode == 7


def test_machine_is_as_asked_for(tmp_path):
    (tmp_path / "far").write_text("\n".join(" ".join("10" if i == j else str(20 + i + j) for j in range(6)) for i in range(6)))
    done = lab(
        "--nodes",
        6,
        "--cpus-per-node",
        "1,3,2,2,2,2",
        "--memory-per-node",
        "256M,512M,256M,256M,256M,256M",
        "--absent",
        "2",
        "--memory-only",
        "3",
        "--cpu-only",
        "4",
        "--distance",
        tmp_path / "far",
        "--thp",
        "never",
        "--autonuma",
        "on",
        "--overcommit",
        "never",
        "--sysctl",
        "vm.overcommit_ratio=77",
        "--cpuset-cpus",
        "1-2",
        "--cpuset-mems",
        "1,5",
        "--",
        "sh",
        "-c",
        """cd /sys/devices/system/node; cat online has_cpu has_memory node1/cpulist node4/distance
        cat /sys/kernel/mm/transparent_hugepage/enabled; cd /proc/sys; cat kernel/numa_balancing vm/overcommit_memory vm/overcommit_ratio
        grep -h _allowed_list /proc/self/status; awk '/MemTotal/{print int($4/1024/64)}' /sys/devices/system/node/node[015]/meminfo""",
    )
    assert done.stdout.decode().split("\n")[:-1] == [
        "0-1,3-5",
        "0-1,4-5",
        "0-1,3,5",
        "1-3",
        "24 25 27 10 29",
        "always madvise [never]",
        "1",
        "2",
        "77",
        "Cpus_allowed_list:\t1-2",
        "Mems_allowed_list:\t1,5",
        "3",
        "7",
        "3",
    ]


def test_program_that_a_signal_ends():
    assert lab("--", "sh", "-c", "kill -SEGV $$").returncode == 128 + signal.SIGSEGV


def test_time_out():
    done = lab("--timeout", 1, "--", "sleep", "77")
    assert done.returncode == 124
    assert b"still running after 1 s" in done.stderr


def test_panic():
    done = lab("--", "sh", "-c", "echo c >/proc/sysrq-trigger")
    assert done.returncode == 125
    assert b"the guest's kernel panicked: sysrq triggered crash" in done.stderr
    assert b"the console's end:" in done.stderr


def test_out_of_memory_is_reported():
    fill = "a=x; while :; do a=$a$a; done"
    done = lab("--", "numactl", "--membind=1", "sh", "-c", fill)
    assert done.returncode == 128 + signal.SIGKILL
    assert b"the guest ran out of memory and killed process" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind(number, tmp_path):
    environment = dict(os.environ, TMPDIR=str(tmp_path))
    process = subprocess.Popen(
        [NUMALLOC, "lab", "run", "--", "sleep", "777"],
        env=environment,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where the tests run in the background
    )
    wait_until(lambda: qemu_of(process.pid))
    machine = qemu_of(process.pid)
    if number == signal.SIGKILL:  # nobody tidies up then; but QEMU has soon read its files, and they go at once
        wait_until(lambda: not list(tmp_path.iterdir()))
    process.send_signal(number)
    status = process.wait(timeout=PATIENCE)
    assert status == (-number if number == signal.SIGKILL else 128 + number)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in machine))
    assert list(tmp_path.iterdir()) == []


def wait_until(condition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def qemu_of(pid: int) -> list[int]:
    """The machines that process `pid` has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, fields = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:  # it has ended meanwhile
            continue
        if name.startswith("qemu-system") and int(fields.split()[1]) == pid:
            found.append(int(folder.name))
    return found


def test_two_labs_side_by_side():
    both = [
        subprocess.Popen(
            [NUMALLOC, "lab", "run", "--nodes", str(nodes), "--", "sh", "-c", "cat /sys/devices/system/node/online"], stdout=subprocess.PIPE
        )
        for nodes in (3, 4)
    ]
    assert [process.communicate()[0].decode().strip() for process in both] == ["0-2", "0-3"]


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["--nodes", "33", "--", "true"], 2, "2 to 32"),
        (["--nodes", "1", "--", "true"], 2, "2 to 32"),
        (["--cpus-per-node", "2,2,2", "--", "true"], 2, "one value, or one for each node"),
        (["--cpus-per-node", "200", "--", "true"], 2, "up to 255"),
        (["--cpus-per-node", "0,2", "--", "true"], 2, "node 0"),
        (["--cpus-per-node", "many", "--", "true"], 2, "a whole number"),
        (["--memory-per-node", "5x", "--", "true"], 2, "such as 512M"),
        (["--memory-per-node", "16M", "--", "true"], 2, "at least 128M"),
        (["--distance", "round", "--", "true"], 2, "full, twogroups, ladder"),
        (["--thp", "yes", "--", "true"], 2, "always, madvise, never"),
        (["--autonuma", "1", "--", "true"], 2, "on, off"),
        (["--overcommit", "1", "--", "true"], 2, "heuristic, always, never"),
        (["--accel", "xen", "--", "true"], 2, "auto, tcg, kvm"),
        (["--tcg-threads", "4", "--", "true"], 2, "auto, single, multi"),
        (["--cpuset-cpus", "9", "--", "true"], 2, "0 to 3"),
        (["--absent", "4-3", "--", "true"], 2, "such as 0-2,5"),
        (["--sysctl", "vm.swappiness", "--", "true"], 2, "NAME=VALUE"),
        (["--env", "NOT_SET_HERE", "--", "true"], 2, "NAME=VALUE"),
        (["--file", "/nowhere", "--", "true"], 2, "/nowhere"),
        (["--file", "/proc", "--", "true"], 2, "for which the guest has its own"),
        (["--console", "/nowhere/log", "--", "true"], 2, "/nowhere/log"),
        (["--timeout", "nan", "--", "true"], 2, "more than 0"),
        (["--preload", "/nowhere.so", "--", "true"], 2, "/nowhere.so"),
        (["--kernel", "/nowhere", "--", "true"], 2, "bzImage"),
        (["--timeout", "0", "--", "true"], 2, "more than 0"),
        (["--", "no-such-program"], 127, "no such command"),
        (["--", "/etc/passwd"], 126, "cannot be executed"),
    ],
)
def test_bad_arguments_get_one_line(words, status, says):
    done = lab(*words)
    message = done.stderr.decode()
    assert done.returncode == status
    assert says in message
    assert message.count("\n") == 1
    assert done.stdout == b""
