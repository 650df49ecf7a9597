"""`numalloc run` in a machine of eight nodes: where threads and pages really are, under numalloc and under glibc,
with each lever; instances a node each; ranks of a real mpirun."""

import json
import os
import shutil
from pathlib import Path

import guest_python
import pytest
from numalloc_tools.guest import batch, programs
from numalloc_tools.guest.machine import build_machine

PROGRAMS = Path(__file__).with_name("programs")
NODES, CPUS, THREADS = 8, 16, 8
GLIBC = ["--allocator", "glibc"]
LEVERS = {
    "numalloc-default": [],
    "numalloc-sparse": ["--threads", "sparse"],
    "numalloc-dense": ["--threads", "dense"],
    "numalloc-interleave": ["--memory", "interleave"],
    "numalloc-preferred": ["--memory", "preferred:5"],
    "numalloc-bind": ["--memory", "bind:2,6"],
    "numalloc-first-touch": ["--memory", "first-touch", "--threads", "none"],
    "glibc-default": GLIBC,
    "glibc-sparse": [*GLIBC, "--threads", "sparse"],
    "glibc-dense": [*GLIBC, "--threads", "dense"],
    "glibc-interleave": [*GLIBC, "--memory", "interleave"],
    "glibc-preferred": [*GLIBC, "--memory", "preferred:5"],
    "glibc-bind": [*GLIBC, "--memory", "bind:2,6"],
    "glibc-local": [*GLIBC, "--memory", "local"],
    "binding-only": ["--binding-only"],
    "weighted": [*GLIBC, "--memory", "weighted"],
    "unknown-node": ["--memory", "preferred:8"],
    "report": [*GLIBC, "--threads", "sparse", "--memory", "interleave", "--report", "--json", "/tmp/report"],
}
BALANCED = {"autonuma-default": (GLIBC, 300), "autonuma-off": ([*GLIBC, "--autonuma", "off"], 40)}  # and seconds at most


# What they load here, they will load there.
LOADING = (["run", "--report", "--", "sleep", "0.2"], ["run", "--nonsense"], ["run", "--show", "--json", "-"])


def run_job(name: str, flags: list[str], program: str, *arguments, setup: str = "", around=(), **more) -> batch.Job:
    words = guest_python.command("run", *flags, "--", str(programs.built(program, PROGRAMS)), *map(str, arguments))
    return batch.Job(name, [*around, *words], more, setup)


@pytest.fixture(scope="module")
def report(library):
    machine = build_machine(nodes=NODES, cpus_per_node="2", memory_per_node="512M", distance="ladder")
    jobs = [run_job(name, flags, "spread", THREADS, 12 if name == "report" else 2) for name, flags in LEVERS.items()]
    ranked = {"OMPI_COMM_WORLD_LOCAL_RANK": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "8"}
    jobs += [
        run_job("inherited", ["--memory", "local"], "spread", THREADS, 2, around=["numactl", "--interleave=all"]),
        run_job("instances", ["--instances", "per-node", "--logs", "/tmp/logs"], "spread", 2, 2),
        batch.Job("logs", ["sh", "-c", "cat /tmp/logs/*.out"]),
        batch.Job("report-json", ["cat", "/tmp/report"]),
        run_job("confined", ["--instances", "2"], "spread", 2, 2, around=["taskset", "-c", "4-7"]),
        run_job("rank", ["-v"], "spread", 2, 2, **ranked),
        run_job("rank-refused", [*GLIBC, "--no-ranks"], "spread", 2, 2, **ranked),
        run_job("bound-rank", ["-v"], "spread", 2, 2, around=["taskset", "-c", "12"], **ranked),
    ]
    binding = str(Path(library).with_name("libnumalloc-binding.so"))
    files = [*guest_python.files(*LOADING), library, binding, str(programs.built("spread", PROGRAMS))]
    return batch.run(machine, jobs, files, commands=["numactl", "taskset"])


def seen(report, name: str) -> dict:
    result = report.results[name]
    assert result.status == 0, f"exit status {result.status}\n{result.stdout}\n{result.stderr}"
    return json.loads(result.stdout)


def nodes_of_threads(found: dict) -> list[int]:
    """Of each thread but main, which is bound to one node's CPUs."""
    for thread in found["threads"][1:]:
        assert len(thread["nodes"]) == 1
        node = thread["nodes"][0]
        assert thread["cpus"] == f"{2 * node}-{2 * node + 1}"
    return [thread["nodes"][0] for thread in found["threads"][1:]]


def share(pages: list[int], *nodes: int) -> float:
    return sum(pages[node] for node in nodes if node < len(pages)) / sum(pages)


def heap(found: dict) -> list[int]:
    total = [0] * NODES
    for thread in found["threads"]:
        for node, pages in enumerate(thread["heap"]):
            total[node] += pages
    return total


def is_even(pages: list[int]) -> bool:
    return len(pages) == NODES and min(pages) > 0.8 * sum(pages) / NODES and max(pages) < 1.2 * sum(pages) / NODES


@pytest.mark.parametrize("name", ["numalloc-sparse", "glibc-sparse", "binding-only"])
def test_sparse_gives_each_thread_a_node(report, name):
    assert len(set(nodes_of_threads(seen(report, name)))) == THREADS - 1


@pytest.mark.parametrize("name", ["numalloc-dense", "glibc-dense"])
def test_dense_fills_nodes(report, name):
    nodes = nodes_of_threads(seen(report, name))
    assert len(set(nodes)) == THREADS // 2
    assert nodes == sorted(nodes, key=nodes.index), "one node after the other"


@pytest.mark.parametrize("name", ["glibc-default", "numalloc-first-touch"])
def test_threads_are_left_alone(report, name):
    assert {thread["cpus"] for thread in seen(report, name)["threads"]} == {f"0-{CPUS - 1}"}


@pytest.mark.parametrize("name", ["numalloc-default", "numalloc-sparse", "numalloc-dense"])
def test_numalloc_is_local(report, name):
    for thread in seen(report, name)["threads"][1:]:
        assert share(thread["heap"], *thread["nodes"]) == 1


@pytest.mark.parametrize("name", ["numalloc-interleave", "glibc-interleave"])
def test_interleaved_memory_is_even(report, name):
    assert is_even(heap(seen(report, name)))


@pytest.mark.parametrize("name", ["numalloc-preferred", "glibc-preferred"])
def test_preferred_node_has_it_all(report, name):
    assert share(heap(seen(report, name)), 5) > 0.95


@pytest.mark.parametrize("name", ["numalloc-bind", "glibc-bind"])
def test_bound_memory_is_nowhere_else(report, name):
    assert share(heap(seen(report, name)), 2, 6) > 0.95


def test_the_policy_of_the_process_holds_for_what_is_not_mallocs(report):
    """Under numalloc its option speaks of malloc's memory only."""
    assert is_even(seen(report, "glibc-interleave")["mapped"])
    assert share(seen(report, "glibc-preferred")["mapped"], 5) == 1
    assert len([pages for pages in seen(report, "numalloc-interleave")["mapped"] if pages]) < NODES


def test_flag_wins_over_numactl(report):
    found = seen(report, "inherited")
    assert found["policy"] == 0
    for thread in found["threads"][1:]:
        assert share(thread["heap"], *thread["nodes"]) == 1


def test_weighted_says_which_kernel_it_needs(report):
    """Debian's kernel is 6.1."""
    result = report.results["weighted"]
    assert (result.status, result.stdout) == (2, "")
    assert result.stderr.startswith("numalloc: --memory: weighted needs Linux 6.9, and this is Linux 6.1")
    assert result.stderr.count("\n") == 0


def test_unknown_node_is_named(report):
    result = report.results["unknown-node"]
    assert result.status == 2
    assert result.stderr.strip() == "numalloc: --memory: this machine has no node 8; accepted: 0-7"


def test_instances_have_a_node_each(report):
    assert report.results["instances"].status == 0, report.results["instances"].stderr
    found = [json.loads(line) for line in report.results["logs"].stdout.splitlines()]
    assert len(found) == NODES
    nodes = []
    for one in found:
        assert len({thread["cpus"] for thread in one["threads"]}) == 1
        (node,) = one["threads"][0]["nodes"]
        assert share(heap(one), node) == 1
        assert share(one["mapped"], node) == 1
        nodes.append(node)
    assert sorted(nodes) == list(range(NODES))


def test_instances_keep_to_the_users_cpus(report):
    found = [json.loads(line) for line in report.results["confined"].stdout.splitlines()]
    assert sorted(one["threads"][0]["cpus"] for one in found) == ["4-5", "6-7"]


def test_rank_takes_its_node(report):
    found = seen(report, "rank")
    assert {thread["cpus"] for thread in found["threads"]} == {"6-7"}
    assert share(heap(found), 3) == 1
    assert "local rank 3 of 8 under Open MPI: runs on node 3" in report.results["rank"].stderr


def test_rank_that_its_launcher_has_bound_stays(report):
    assert {thread["cpus"] for thread in seen(report, "bound-rank")["threads"]} == {"12"}
    assert "has only the CPUs of node 6" in report.results["bound-rank"].stderr


def test_ranks_may_be_left_alone(report):
    assert seen(report, "rank-refused")["threads"][0]["cpus"] == f"0-{CPUS - 1}"


def test_report_agrees_with_what_the_program_saw(report):
    seen(report, "report")
    told = json.loads(report.results["report-json"].stdout)[0]
    assert [one["node"] for one in told["nodes"]] == list(range(NODES))
    assert told["status"] == 0 and told["looks"] > 0 and told["source"] == "numa_maps"
    assert [one["cpus"] for one in told["nodes"]] == [f"{2 * node}-{2 * node + 1}" for node in range(NODES)]
    assert all(one["threads"] >= 1 for one in told["nodes"]), "a thread on each node"
    assert is_even([one["peak_bytes"] for one in told["nodes"]])


@pytest.fixture(scope="module")
def balanced():
    """A machine whose kernel balances pages; two nodes are enough."""
    machine = build_machine(nodes=2, cpus_per_node="1", memory_per_node="512M", distance="full")
    jobs = [run_job(name, flags, "drift", 0, 1, 32, limit) for name, (flags, limit) in BALANCED.items()]
    files = [*guest_python.files(*LOADING), str(programs.built("drift", PROGRAMS))]
    return batch.run(machine, jobs, files, autonuma=True, thp="never")


def test_autonuma_moves_pages_unless_it_is_off(balanced):
    moving, still = seen(balanced, "autonuma-default"), seen(balanced, "autonuma-off")
    assert moving["moved"] > 0, "or this would show nothing"
    assert still["moved"] == 0
    print(f"moved after {moving['seconds']} s; nothing had moved after {still['seconds']} s")


@pytest.mark.skipif(not shutil.which("mpirun"), reason="needs the Debian package openmpi-bin")
def test_ranks_of_a_real_mpirun_take_a_node_each(library):
    ranks = 4
    spread = str(programs.built("spread", PROGRAMS))
    words = [
        "mpirun",
        "--allow-run-as-root",
        "--oversubscribe",
        "--bind-to",
        "none",
        "-n",
        str(ranks),
        *guest_python.command("run", "--", spread, "2", "1"),
    ]
    libraries = "/usr/lib/x86_64-linux-gnu"
    own = [f"{libraries}/openmpi", f"{libraries}/pmix2", "/usr/share/openmpi", "/usr/share/pmix", "/etc/openmpi"]
    files = [*guest_python.files(*LOADING), library, spread, *filter(os.path.exists, own), "/etc/passwd", "/etc/hosts"]
    machine = build_machine(nodes=ranks, cpus_per_node="1", memory_per_node="512M", distance="ladder")
    job = batch.Job("mpirun", words, {"OMPI_MCA_plm": "isolated", "TMPDIR": "/tmp"}, "hostname guest; ip link set lo up")
    done = batch.run(machine, [job], files).results["mpirun"]
    assert done.status == 0, f"{done.stdout}\n{done.stderr}"
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert sorted(one["threads"][0]["cpus"] for one in found) == [str(node) for node in range(ranks)]
    for one in found:
        assert share(heap(one), *one["threads"][0]["nodes"]) == 1
