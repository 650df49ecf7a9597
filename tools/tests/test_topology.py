"""`numalloc topology` through the real command: this machine, and machines that nobody here has."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import made_up_machines as made_up
import pytest
from limits import LIMIT
from numalloc_tools.machine.lists import numbers, ranges

NUMALLOC = [sys.executable, "-c", "from numalloc_tools.cli import main; main()"]


def numalloc(*arguments: object, around: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [*around, *NUMALLOC, *map(str, arguments)], env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT
    )


def topology(*arguments: object, **options) -> dict:
    done = numalloc("topology", "--json", *arguments, **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("text", ["0-3,8", "0-62:2", "0-1,4-5,8-9", "5", "", "1,3,5", "0-6:2,7,9-21:4"])
def test_lists_are_read_and_written(text):
    assert numbers(ranges(numbers(text))) == numbers(text)
    assert ranges(numbers("0,2,4,6,8")) == "0-8:2" and ranges(numbers("1,3,5,6")) == "1,3,5-6"


# The real machine


def kernel_says_of_memory() -> int:
    """Bytes of all nodes. A guest that is given its memory page by page has fewer there than in /proc/meminfo."""
    texts = [path.read_text() for path in Path("/sys/devices/system/node").glob("node[0-9]*/meminfo")]
    lines = re.findall(r"MemTotal:\s+(\d+)", "".join(texts) or Path("/proc/meminfo").read_text())
    return sum(map(int, lines)) << 10


def test_real_machine_is_as_the_kernel_says():
    before = kernel_says_of_memory()
    found = topology()
    after = kernel_says_of_memory()
    assert found["kernel"]["release"] == os.uname().release
    assert set(found["process"]["cpus"]) == os.sched_getaffinity(0)
    assert found["processor"]["cpus"] == numbers(Path("/sys/devices/system/cpu/online").read_text())
    folders = {int(path.name[4:]) for path in Path("/sys/devices/system/node").glob("node[0-9]*")} or {0}
    assert {node["number"] for node in found["nodes"]} == folders
    assert min(before, after) <= sum(node["memory"] for node in found["nodes"]) <= max(before, after)
    assert {one["call"] for one in found["permissions"]} >= {"mbind", "sched_setaffinity", "move_pages"}
    assert all(one["answer"] in ("allowed", "refused") for one in found["permissions"])


def test_cpus_are_those_that_taskset_leaves():
    assert topology(around=("taskset", "-c", "0"))["process"]["cpus"] == [0]


def test_text_names_everything_and_has_no_control_characters_in_a_pipe():
    done = numalloc("topology")
    assert done.returncode == 0 and "\x1b" not in done.stdout
    for word in ("node", "CPUs", "memory", "huge pages", "AutoNUMA", "cgroup", "seccomp", "calls"):
        assert word in done.stdout


# Machines that nobody here has


def test_cxl_memory_is_known_by_its_device(tmp_path):
    root = made_up.two_sockets_with_cxl(tmp_path)
    found = topology("--root", root)
    assert [(node["number"], node["kind"], len(node["cpus"])) for node in found["nodes"]] == [
        (0, "DRAM", 32),
        (1, "DRAM", 32),
        (2, "CXL", 0),
    ]
    assert found["nodes"][2]["tier"] == 22 and found["nodes"][2]["weight"] == 2 and found["nodes"][2]["initiators"] == [0]
    assert found["distances"] == [[10, 21, 14], [21, 10, 24], [14, 24, 10]]
    text = numalloc("topology", "--root", root).stdout
    assert "0-62:2" in text and "1-63:2" in text and "CXL (dax0.0 is on CXL)" in text and "256 GiB" in text


def test_slow_memory_is_known_by_its_tier_where_no_device_tells(tmp_path):
    root = made_up.two_sockets_with_cxl(tmp_path)
    (root / "sys/bus/dax/devices/dax0.0").unlink()
    assert topology("--root", root)["nodes"][2]["kind"] == "slower"


def test_memory_only_nodes_without_evidence_get_no_kind(tmp_path):
    root = made_up.machine(tmp_path, made_up.node(0, "0-3", distance="10 20"), made_up.node(1, "", distance="20 10"))
    assert [node["kind"] for node in topology("--root", root)["nodes"]] == ["DRAM", "memory-only"]


def test_hbm_is_known_by_its_bandwidth(tmp_path):
    found = topology("--root", made_up.xeon_max(tmp_path))
    assert [node["kind"] for node in found["nodes"]] == ["DRAM", "DRAM", "HBM", "HBM"]
    assert found["nodes"][2]["performance"]["read_bandwidth"] == 800000


def test_node_without_memory_names_the_nearest(tmp_path):
    done = numalloc("topology", "--root", made_up.memory_less(tmp_path))
    assert re.search(r"^ *1 +4-7 +\(4\) +none +no memory; nearest: node 0", done.stdout, re.MULTILINE), done.stdout


def test_distances_are_a_map_of_numbers(tmp_path):
    text = numalloc("topology", "--root", made_up.eight_nodes(tmp_path)).stdout
    assert re.search(r"^0 +10 +16 +16 +16 +32 +32 +32 +32 *$", text, re.MULTILINE), text


@pytest.mark.parametrize(("count", "columns"), [(1, 80), (8, 80), (33, 80), (64, 80), (64, 300)])
def test_every_width_is_readable(tmp_path, count, columns):
    root = made_up.many_nodes(tmp_path, count)
    text = in_a_terminal(columns, "topology", "--root", str(root))
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert max(map(len, plain.splitlines())) <= columns
    assert f"{16 * count - 16}-{16 * count - 1}" in plain
    if count > 1:
        assert "\x1b[" in text, "a terminal has colours"
        row = next(line.split() for line in plain.partition("distances")[2].splitlines() if line.startswith(f"{count - 1} "))
        assert len(row) == count + 1 or len(row[1]) in (count, 2 * count), f"the last row is not in one line: {row}"


def in_a_terminal(columns: int, *arguments: str) -> str:
    """What the command writes into a terminal of that width."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(COLUMNS=str(columns), TERM="xterm-256color")
        os.execv(NUMALLOC[0], [*NUMALLOC, *arguments])
    text = b""
    try:
        while chunk := os.read(terminal, 65536):
            text += chunk
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, text.decode()
    return text.decode().replace("\r\n", "\n")


def test_plain_letters_where_there_are_no_others(tmp_path):
    done = numalloc("topology", "--root", made_up.many_nodes(tmp_path, 64), PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and done.stdout.isascii() and "?" not in done.stdout
    assert "######......  50%" in done.stdout


def test_huge_pages_of_each_size_are_listed(tmp_path):
    pages = {
        f"hugepages/hugepages-{size}kB/{name}": value
        for size in (2048, 1048576)
        for name, value in (("nr_hugepages", "4"), ("free_hugepages", "3"))
    }
    root = made_up.machine(tmp_path, made_up.node(0, "0-3", **pages))
    found = topology("--root", root)["nodes"][0]["huge_pages"]
    assert found == [{"size": 2 << 20, "total": 4, "free": 3}, {"size": 1 << 30, "total": 4, "free": 3}]
    assert numalloc("topology", "--root", root).stdout.count("3 of 4 free") == 2


def test_first_cgroups_are_read(tmp_path):
    group = topology("--root", made_up.in_cgroup_1(tmp_path))["process"]["cgroup"]
    assert (group["version"], group["path"], group["memory_limit"], group["memory_used"]) == (
        1,
        "/docker/abc",
        1 << 30,
        800 << 20,
    )
    assert (group["cpu_quota"], group["cpus"], group["mems"]) == (2.0, [0, 1, 2, 3], [0])


def test_limits_of_the_cgroup_above_count(tmp_path):
    group = topology("--root", made_up.in_cgroup_2(tmp_path, 100 << 20, 2 << 30))["process"]["cgroup"]
    assert (group["version"], group["memory_limit"], group["memory_high"], group["memory_used"]) == (2, 2 << 30, None, 100 << 20)
    assert (group["cpu_quota"], group["mems"]) == (1.5, list(range(8)))


def test_machine_without_sys_is_one_node(tmp_path):
    root = made_up.write(
        tmp_path,
        {
            "proc/cpuinfo": "processor : 0\nprocessor : 1",
            "proc/meminfo": "MemTotal: 2048 kB\nMemFree: 1024 kB",
            "proc/self/status": made_up.status("0-1", "0"),
        },
    )
    found = topology("--root", root)
    assert [(node["memory"], node["cpus"]) for node in found["nodes"]] == [(2 << 20, [0, 1])] and not found["nodes_from_sysfs"]
    assert "shows no memory nodes" in numalloc("topology", "--root", root).stdout


def test_broken_files_are_no_traceback(tmp_path):
    root = made_up.eight_nodes(tmp_path)
    for name in ("node0/cpulist", "node1/meminfo", "node2/distance", "online"):
        (root / "sys/devices/system/node" / name).write_bytes(b"\xff\xfe nonsense 9-1,,--\n")
    (root / "sys/kernel/mm/transparent_hugepage/enabled").write_text("")
    done = numalloc("topology", "--root", root)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr


# The picture


@pytest.mark.parametrize("count", [1, 2, 8, 64])
def test_picture_shows_every_node(tmp_path, count):
    output = tmp_path / "machine.svg"
    done = numalloc("topology", "--root", made_up.many_nodes(tmp_path, count), "--svg", output)
    assert done.returncode == 0 and done.stdout == "", done.stderr
    words = [text.text for text in ElementTree.parse(output).iter("{http://www.w3.org/2000/svg}text")]
    assert [word for word in words if word and word.startswith("node ")] == [f"node {number}" for number in range(count)]
    assert any(word and "64 GiB, 50% in use" in word for word in words)
    assert ("distances" in words) == (count > 1)


# Bad input


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--root", "/nowhere"], "/nowhere contains neither sys nor proc"),
        (["--svg", "/nowhere/a.svg"], "the folder of /nowhere/a.svg does not exist"),
        (["--svg", "/tmp"], "/tmp is a folder"),
    ],
)
def test_errors_are_one_line_and_status_2(arguments, named):
    done = numalloc("topology", *arguments)
    assert done.returncode == 2 and named in done.stderr and done.stderr.count("\n") == 1


def test_unknown_option_ends_with_2():
    done = numalloc("topology", "--colour")
    assert done.returncode == 2 and "Traceback" not in done.stderr
