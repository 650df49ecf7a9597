"""`numalloc doctor` through the real command: this machine, containers on it, and machines that nobody here has."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import made_up_machines as made_up
import pytest
from doctor_command import ALLOWED, LIBRARIES, LIBRARY, NUMALLOC, doctor, numalloc
from limits import LIMIT

FORBIDDEN = Path(__file__).with_name("forbidden.py")

# Machines that nobody here has


def test_sound_machine_has_no_problems(tmp_path):
    found = doctor("--root", made_up.eight_nodes(tmp_path))
    assert {finding["severity"] for finding in found.values()} == {"ok"}
    assert {"nodes", "autonuma", "huge-pages", "zone-reclaim", "cpuset"} <= found.keys()
    text = numalloc("doctor", "--root", tmp_path)
    assert text.returncode == 0 and "\x1b" not in text.stdout and "8 nodes with memory" in text.stdout


ENABLED, DEFRAG = "sys/kernel/mm/transparent_hugepage/enabled", "sys/kernel/mm/transparent_hugepage/defrag"
STATUS, MEMINFO, LIMITS = "proc/self/status", "proc/meminfo", "proc/self/limits"


def limits(name: str, value: int) -> str:
    return f"Limit                     Soft Limit           Hard Limit           Units\n{name:<26}{value:<21}unlimited            bytes"


@pytest.mark.parametrize(
    ("files", "name", "severity", "words"),
    [
        ({"proc/sys/kernel/numa_balancing": "1"}, "autonuma", "note", "sysctl kernel.numa_balancing=0"),
        (
            {ENABLED: "always madvise [never]"},
            "huge-pages",
            "warning",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        (
            {"sys/kernel/mm/transparent_hugepage/hugepages-2048kB/enabled": "always inherit madvise [never]"},
            "huge-pages",
            "warning",
            "hugepages-2048kB/enabled",
        ),
        (
            {ENABLED: "[always] madvise never", DEFRAG: "[always] defer defer+madvise madvise never"},
            "huge-pages",
            "warning",
            "compact",
        ),
        ({ENABLED: "[always] madvise never"}, "huge-pages", "ok", "always"),
        ({STATUS: made_up.status("0-63", "0-7", THP_enabled="0")}, "huge-pages", "warning", "prctl"),
        ({"proc/sys/vm/zone_reclaim_mode": "1"}, "zone-reclaim", "warning", "sysctl vm.zone_reclaim_mode=0"),
        ({STATUS: made_up.status("0-3", "0-7")}, "cpuset", "note", "4 of 64 CPUs (0-3)"),
        ({STATUS: made_up.status("0-3,64-127", "0-7")}, "cpuset", "note", "4 of 64 CPUs (0-3)"),  # and places for 64 more
        ({STATUS: made_up.status("0-15", "0")}, "cpuset-mems", "warning", "cpuset.mems=0-1"),
        ({MEMINFO: "SwapTotal: 1000 kB\nSwapFree: 100 kB"}, "swap", "warning", "900 KiB"),
        (
            {"proc/sys/vm/overcommit_memory": "2", MEMINFO: "CommitLimit: 1000 kB\nCommitted_AS: 950 kB"},
            "overcommit",
            "warning",
            "950 KiB of",
        ),
        (
            {"proc/sys/vm/overcommit_memory": "2", MEMINFO: "CommitLimit: 1000 kB\nCommitted_AS: 100 kB"},
            "overcommit",
            "note",
            "0.98 MiB",
        ),
        ({LIMITS: limits("Max address space", 1 << 30)}, "address-space-limit", "note", "1 GiB of address space"),
        ({"proc/sys/vm/max_map_count": "1000"}, "mappings", "warning", "sysctl vm.max_map_count=65530"),
        ({"proc/sys/kernel/osrelease": "5.10.0-8"}, "kernel", "note", "MPOL_WEIGHTED_INTERLEAVE (Linux 6.9)"),
        (
            {"sys/kernel/mm/ksm/run": "1", "sys/kernel/mm/ksm/merge_across_nodes": "1"},
            "page-merging",
            "note",
            "merge_across_nodes",
        ),
        (
            {"sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages": "16384"},
            "reserved-huge-pages",
            "warning",
            "on node 0 only",
        ),
        (
            {f"sys/devices/system/node/node{n}/hugepages/hugepages-2048kB/nr_hugepages": "16" for n in range(8)},
            "reserved-huge-pages",
            "note",
            "vm.nr_hugepages=0",
        ),
    ],
)
def test_problems_are_found(tmp_path, files, name, severity, words):
    found = doctor("--root", made_up.eight_nodes(tmp_path, **files))
    assert found[name]["severity"] == severity
    assert words in json.dumps(found[name])


def test_one_node_gets_no_advice_for_many(tmp_path):
    switches = {"proc/sys/kernel/numa_balancing": "1", "proc/sys/vm/zone_reclaim_mode": "1", "sys/kernel/mm/ksm/run": "1"}
    found = doctor("--root", made_up.one_node(tmp_path, **switches))
    assert found["nodes"]["severity"] == "note" and not {"autonuma", "zone-reclaim", "page-merging"} & found.keys()


def test_kinds_of_memory_have_their_advice(tmp_path):
    found = doctor("--root", made_up.two_sockets_with_cxl(tmp_path / "cxl"))
    assert "numactl --interleave=0-1 PROGRAM" in found["slow-memory"]["mend"][0]
    mend = doctor("--root", made_up.xeon_max(tmp_path / "hbm"))["fast-memory"]["mend"]
    assert mend[0] == "NUMALLOC_MEMORY=preferred:2 PROGRAM" and mend[1].startswith("NUMALLOC_MEMORY=bind:2-3 PROGRAM, if all")
    found = doctor("--root", made_up.memory_less(tmp_path / "less"))["memory-less-node"]
    assert found["severity"] == "warning" and "taskset -c 0-3" in found["mend"][0]


@pytest.mark.parametrize(("second", "severity"), [(64, None), (48, "note"), (16, "warning")])
def test_uneven_memory_is_found(tmp_path, second, severity):
    nodes = [made_up.node(0, "0-3", distance="10 20"), made_up.node(1, "4-7", memory=second * made_up.GIB, distance="20 10")]
    assert doctor("--root", made_up.machine(tmp_path, *nodes)).get("uneven-memory", {}).get("severity") == severity


def test_full_node_is_found(tmp_path):
    nodes = [made_up.node(0, "0-3", distance="10 20", free=made_up.GIB), made_up.node(1, "4-7", distance="20 10")]
    found = doctor("--root", made_up.machine(tmp_path, *nodes))["full-node"]
    assert found["severity"] == "warning" and "Node 0" in found["what"] and "1 GiB of 64 GiB" in found["what"]


@pytest.mark.parametrize(("used", "severity"), [(100, "ok"), (850, "warning"), (1000, "bad")])
def test_memory_limit_of_the_cgroup_is_judged(tmp_path, used, severity):
    assert doctor("--root", made_up.in_cgroup_2(tmp_path, used << 20, 1 << 30))["memory-limit"]["severity"] == severity


def test_first_cgroups_are_judged(tmp_path):
    found = doctor("--root", made_up.in_cgroup_1(tmp_path), "--threads", "8")
    assert found["nodes"]["severity"] == "note" and "one node only" in found["nodes"]["what"]
    assert found["cpuset"]["what"] == "8 threads for 4 CPUs (0-3)" and found["cpu-quota"]["severity"] == "warning"


def test_missing_sys_is_bad_where_there_are_several_nodes(tmp_path):
    root = made_up.write(tmp_path, {"proc/self/status": made_up.status("0-1", "0-1"), "proc/meminfo": "MemTotal: 2048 kB"})
    assert doctor("--root", root)["nodes"]["severity"] == "bad"


# This machine, and containers on it


def test_real_machine_is_judged():
    found = doctor()
    assert "nodes" in found and "cpuset" in found
    assert found.get("calls", {}).get("severity", "ok") == "ok"


def test_cpuset_of_the_real_machine_counts():
    around = ("taskset", "-c", str(ALLOWED))
    assert f"1 CPU ({ALLOWED})" in doctor("--threads", "2", around=around)["cpuset"]["what"]
    assert "3 threads" in doctor(OMP_NUM_THREADS="3", around=around)["cpuset"]["what"]


@pytest.mark.parametrize("threads", ["\u00b2", "", "many", "1,x"])
def test_invalid_number_of_threads_is_ignored(threads):
    assert doctor(OMP_NUM_THREADS=threads)["cpuset"]["severity"] in ("ok", "note")


def test_limit_on_address_space_is_found():
    found = doctor(around=("prlimit", f"--as={8 << 30}"), NUMALLOC_RESERVE="64G")
    assert found["address-space-limit"]["severity"] == "bad" and "64 GiB" in found["address-space-limit"]["what"]


def forbidding(action: str, calls: str) -> tuple[str, ...]:
    """Without the capability that the profiles of containers look at."""
    without = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice") if os.getuid() == 0 else ()
    return (*without, sys.executable, str(FORBIDDEN), action, calls)


@pytest.mark.skipif(not (LIBRARIES / "libseccomp.so.2").exists(), reason="no libseccomp here")
@pytest.mark.parametrize(("action", "answer"), [("EPERM", "is refused (EPERM)"), ("KILL", "ends the caller (SIGSYS)")])
def test_seccomp_that_refuses_mbind_is_found(action, answer):
    """As Docker's own profile does it, and as one that kills."""
    around = forbidding(action, "mbind,get_mempolicy,set_mempolicy")
    found = doctor(around=around)
    assert answer in found["call-mbind"]["what"] and "seccomp" in found["call-mbind"]["what"]
    advice = "docker run --cap-add SYS_NICE ..." if action == "EPERM" else "SystemCallErrorNumber=EPERM"
    assert advice in " ".join(found["call-mbind"]["mend"])
    assert "call-sched_setaffinity" not in found
    several = len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) > 1
    assert found["call-mbind"]["severity"] == ("bad" if several else "note")
    shown = {one["call"]: one["answer"] for one in json.loads(numalloc("topology", "--json", around=around).stdout)["permissions"]}
    assert shown["mbind"] == ("killed" if action == "KILL" else "refused") and shown["move_pages"] == "allowed"


@pytest.mark.skipif(not (LIBRARIES / "libseccomp.so.2").exists(), reason="no libseccomp here")
def test_no_capability_allows_calls_that_docker_forbids_to_all():
    found = doctor(around=forbidding("EPERM", "move_pages"))["call-move_pages"]
    assert "SYS_NICE" not in found["what"] + " ".join(found["mend"]) and "seccomp=FILE" in found["mend"][0]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_container_without_sys_is_judged():
    """As `unshare` makes one; /sys is empty there."""
    script = 'mount -t tmpfs none /sys && exec "$@"'
    around = ("unshare", "--mount", "sh", "-c", script, "sh")
    if subprocess.run([*around, "true"], capture_output=True, timeout=LIMIT).returncode:
        pytest.skip("no mount namespace can be made here")
    done = numalloc("doctor", "--json", around=around)
    assert done.returncode == 0, done.stderr
    assert "one memory node" in json.loads(done.stdout)["findings"][0]["what"]


def test_unprivileged_container_is_judged():
    around = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*around, "true"], capture_output=True, timeout=LIMIT).returncode:
        pytest.skip("no user namespaces here")
    assert "nodes" in doctor(around=around)


# Bad input and ends


def is_kthreadd(process):
    """In a container the second process is a program."""
    name = Path(f"/proc/{process}/comm")
    return name.is_file() and name.read_text() == "kthreadd\n"


@pytest.mark.parametrize(
    ("arguments", "status", "named"),
    [
        (["--", "no-such-program"], 127, "no-such-program: there is no such program in PATH"),
        (["--", "./nothing/here"], 127, "./nothing/here: there is no such program"),
        (["--", "/etc/passwd"], 2, "/etc/passwd cannot be executed"),
        (["999999999"], 2, "999999999: there is no such process"),
        *([(["2"], 2, "is a kernel thread or has ended" if os.geteuid() == 0 else "belongs to root")] if is_kthreadd(2) else []),
        (["--threads", "0"], 2, "--threads: 0 is too few"),
        (["--library", "/nowhere.so", "--", "ls"], 2, "/nowhere.so is not a file"),
        (["--root", "/nowhere"], 2, "contains neither sys nor proc"),
        (["--root", "/", "--", "ls"], 2, "another machine's files do not describe a program here"),
    ],
)
def test_errors_are_one_line(arguments, status, named):
    done = numalloc("doctor", *arguments)
    assert (done.returncode, done.stderr.count("\n")) == (status, 1), done.stderr
    assert named in done.stderr and done.stdout == ""


def changed(at: int, words: bytes) -> bytes:
    content = bytearray(Path(os.path.realpath("/bin/sh")).read_bytes())
    content[at : at + len(words)] = words
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        b"\x7fELF",
        b"\x7fELF" + bytes(60),
        b"\x7fELF\x02\x01\x01" + b"\xff" * 200,
        b"plain words",
        changed(32, b"\xff" * 8),
        changed(32, b"\x40" + bytes(5) + b"\x5e\x00"),
        changed(40, b"\xff" * 8),
    ],
    ids=["magic", "zeros", "ones", "text", "segments", "far segments", "sections"],
)
def test_broken_programs_are_one_line(tmp_path, content):
    program = tmp_path / "broken"
    program.write_bytes(content)
    program.chmod(0o755)
    done = numalloc("doctor", "--library", LIBRARY, "--", program)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


def test_library_itself_is_no_program():
    done = numalloc("doctor", "--library", LIBRARY, "--", LIBRARY)
    assert done.returncode == 2 and "is a shared library" in done.stderr


def test_ctrl_c_leaves_no_traceback(tmp_path):
    """While it reads a file that has no end."""
    made_up.one_node(tmp_path)
    waits = tmp_path / "proc/meminfo"
    waits.unlink()
    os.mkfifo(waits)
    process = subprocess.Popen([*NUMALLOC, "doctor", "--root", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with waits.open("w"):  # opens when the other end is opened
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=LIMIT)
    assert (process.returncode, stdout, stderr) == (130, "", "")


def test_the_number_of_a_process_is_followed_by_json_alone():
    before, after = numalloc("doctor", "--json", os.getpid()), numalloc("doctor", os.getpid(), "--json")
    assert json.loads(after.stdout)["target"]["process"] == os.getpid()
    assert (after.returncode, [one["name"] for one in json.loads(after.stdout)["findings"]]) == (
        before.returncode,
        [one["name"] for one in json.loads(before.stdout)["findings"]],
    )
    wrong = numalloc("doctor", os.getpid(), "--threads", 4)
    assert wrong.returncode == 2
    assert wrong.stderr == "numalloc: --threads: follows the number of a process; accepted there: --json\n"
