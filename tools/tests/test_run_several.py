"""`numalloc run` with several processes: instances, and ranks of launchers, as far as one node shows it."""

import errno
import os
import shutil
import signal
import subprocess
import sys

import pytest
from limits import LIMIT
from numalloc_tools.launch.nodes import Nodes
from numalloc_tools.machine.calls import Affinity, MemoryPolicy
from numalloc_tools.problem import Problem
from numalloc_tools.run import instances, ranks

COMMAND = [sys.executable, "-c", "from numalloc_tools.cli import main; main()", "run"]
FOUR = Nodes((0, 1, 2, 5), {0: (0, 1), 1: (2, 3), 5: (6, 7)}, (0, 1, 2))
TWO = Nodes((0, 1), {1: (2, 3)}, (0, 1))


def run(*words: object, **options) -> subprocess.CompletedProcess:
    return subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, **options, timeout=LIMIT)


def test_instances_write_apart_and_the_worst_counts(tmp_path):
    script = "echo out $NUMALLOC_INSTANCE $NUMALLOC_NODE; echo err >&2; cat; exit $((NUMALLOC_INSTANCE % 3))"
    done = run("--instances", 4, "--logs", tmp_path / "a" / "b", "--", "sh", "-c", script, input="nobody reads this")
    assert (done.returncode, done.stdout) == (2, "")
    said = [f"numalloc: instance {number} on node 0 ended with status {number}" for number in (1, 2)]
    assert done.stderr.splitlines() == said
    logs = tmp_path / "a" / "b"
    assert sorted(os.listdir(logs)) == sorted(f"{number}.{stream}" for number in range(4) for stream in ("out", "err"))
    for number in range(4):
        assert (logs / f"{number}.out").read_text() == f"out {number} 0\n"
        assert (logs / f"{number}.err").read_text() == "err\n"


def logged(instances, folder, script):
    return ["--instances", str(instances), "--logs", str(folder), "--allocator", "glibc", "--", "sh", "-c", script]


def test_no_instance_runs_if_a_log_cannot_be_written(tmp_path):
    (tmp_path / "2.out").mkdir()
    words = logged(3, tmp_path, f"touch {tmp_path}/$NUMALLOC_INSTANCE.ran")
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 2 and "2.out cannot be written" in done.stderr, done.stderr
    assert not list(tmp_path.glob("*.ran"))


def test_instances_may_be_more_than_files_that_may_be_open(tmp_path):
    limited = ["bash", "-c", 'ulimit -n 40 && exec "$0" "$@"', *COMMAND]
    words = logged(50, tmp_path, "echo $NUMALLOC_INSTANCE; ulimit -n; cat")
    for options in ([], ["--report"]):
        done = subprocess.run([*limited, *options, *words], capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        for number in range(50):
            assert (tmp_path / f"{number}.out").read_text() == f"{number}\n40\n"


def test_an_instance_that_a_signal_ends_is_the_worst():
    done = run("--instances", 2, "--", "sh", "-c", "[ $NUMALLOC_INSTANCE = 0 ] && kill -SEGV $$; exit 100")
    assert done.returncode == 128 + signal.SIGSEGV
    assert "instance 0 on node 0 was ended by SIGSEGV" in done.stderr


def test_per_node_is_one_instance_here():
    done = run("--instances", "per-node", "--", "echo", "ran")
    assert done.stdout.count("ran") == len([name for name in os.listdir("/sys/devices/system/node") if name[4:].isdigit()])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signals_pass_to_all_instances(number):
    script = f"trap 'exit 3' {int(number)}; echo ready; while :; do sleep 0.05; done"
    words = [*COMMAND, "--instances", "3", "--", "sh", "-c", script]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(3):
        assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, error = process.communicate(timeout=LIMIT)
    assert process.returncode == 3
    assert error.count("ended with status 3") == 3


def test_logs_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("--instances", 2, "--logs", tmp_path / "file", "--", "true")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "--logs" in done.stderr


def test_instances_take_nodes_in_turn():
    found = instances.planned("4", FOUR, bind_memory=False)
    assert [one.node for one in found] == [0, 1, 5, 0]
    assert found[2].calls == (Affinity((6, 7)),)
    assert [one.node for one in instances.planned("per-node", TWO, bind_memory=False)] == [1]


def test_rank_is_read_from_each_launcher():
    openmpi = {"OMPI_COMM_WORLD_LOCAL_RANK": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "4", "OMPI_COMM_WORLD_RANK": "9"}
    assert ranks.rank(openmpi) == ranks.Rank("Open MPI", 2, 4)
    assert ranks.rank({"MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "3", "PMI_RANK": "7"}) == ranks.Rank("MPICH's Hydra", 1, 3)
    slurm = {"SLURM_LOCALID": "1", "SLURM_STEP_ID": "0", "SLURM_NODEID": "2", "SLURM_STEP_TASKS_PER_NODE": "4(x2),3"}
    assert ranks.rank(slurm) == ranks.Rank("srun", 1, 3)
    assert ranks.rank({"SLURM_LOCALID": "0", "SLURM_NODEID": "0"}) is None, "a batch script is no rank"
    assert ranks.rank({"PMI_RANK": "3"}) is None, "a number among all machines says nothing about this one"


@pytest.mark.parametrize(("local", "cpus"), [(0, (0, 1)), (1, (2, 3)), (2, (6, 7)), (3, (0, 1))])
def test_local_ranks_take_nodes_in_turn(local, cpus):
    environment = {"OMPI_COMM_WORLD_LOCAL_RANK": str(local), "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
    assert ranks.place(environment, FOUR, asked=False)[0] == Affinity(cpus)


def test_ranks_that_stay_where_they_are():
    alone = {"OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}
    assert ranks.place(alone, FOUR, asked=False)[0] is None, "the machine is its own"
    assert ranks.place(alone, FOUR, asked=True)[0] == Affinity((0, 1))
    unsaid = {"MPI_LOCALRANKID": "2"}
    assert ranks.place(unsaid, FOUR, asked=False)[0] == Affinity((6, 7)), "who is numbered is not alone"
    bound = {"OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
    assert ranks.place(bound, TWO, asked=False)[0] is None, "its launcher has bound it"
    assert ranks.place({}, FOUR, asked=False) == (None, "")
    with pytest.raises(Problem, match="accepted: under mpirun or srun"):
        ranks.place({}, FOUR, asked=True)


@pytest.mark.full("Open MPI's daemons, which take ports")
@pytest.mark.skipif(not shutil.which("mpirun"), reason="needs the Debian package openmpi-bin")
def test_ranks_of_a_real_mpirun():
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    launcher = ["mpirun", *root, "--oversubscribe", "--bind-to", "none", "-n", "2"]
    done = subprocess.run([*launcher, *COMMAND, "-v", "--", "echo", "rank"], capture_output=True, text=True, timeout=LIMIT)
    assert (done.returncode, done.stdout) == (0, "rank\nrank\n"), done.stderr
    for local in range(2):
        assert f"local rank {local} of 2 under Open MPI" in done.stderr
    quiet = subprocess.run([*launcher, *COMMAND, "--", "echo", "rank"], capture_output=True, text=True, timeout=LIMIT)
    assert "local rank" not in quiet.stderr


def test_policies_are_tried_without_staying():
    """In a thread that ends: a kernel that knows no such mode says so, and this process keeps its own."""
    if MemoryPolicy("MPOL_LOCAL").refusal() == errno.EPERM:
        pytest.skip("a container's profile refuses set_mempolicy here")
    assert MemoryPolicy("MPOL_BIND", ()).refusal() != 0
    assert MemoryPolicy("MPOL_LOCAL").refusal() == 0
    script = (
        "from numalloc_tools.machine.calls import MemoryPolicy, inherited_policy as now; p = MemoryPolicy('MPOL_LOCAL');"
        "p.refusal(); print(now()); p.make(); print(now())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout == "MPOL_DEFAULT\nMPOL_LOCAL\n"
