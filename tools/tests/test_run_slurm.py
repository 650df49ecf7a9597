"""`numalloc run` under a real srun: Slurm's daemons, started here for one machine, without systemd."""

import os
import shutil
import socket
import subprocess
import sys
import time

import pytest
from limits import LIMIT

pytestmark = pytest.mark.full("Slurm's daemons")

COMMAND = [sys.executable, "-c", "from numalloc_tools.cli import main; main()", "run"]
DAEMONS = ("munged", "slurmctld", "slurmd", "srun")
CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthInfo=socket={folder}/munge/socket
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """The environment in which srun finds this machine idle."""
    missing = [name for name in DAEMONS if not shutil.which(name)]
    if missing or os.geteuid() != 0:
        pytest.skip("needs root, and the Debian packages slurm-wlm and munge")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir(mode=0o700)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    names = {"host": socket.gethostname().split(".")[0], "folder": folder, "cpus": os.cpu_count()}
    (folder / "slurm.conf").write_text(CONFIGURATION.format(controller=free_port(), daemon=free_port(), **names))
    place = folder / "munge"
    munge = [
        "munged",
        "-F",
        "-f",
        f"--key-file={key}",
        f"--socket={place / 'socket'}",
        f"--pid-file={place / 'pid'}",
        f"--log-file={place / 'log'}",
        f"--seed-file={place / 'seed'}",
    ]
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
    started = []
    try:
        for words in (munge, ["slurmctld", "-D", "-c"], ["slurmd", "-D", "-c"]):
            started.append(subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        deadline = time.monotonic() + 60
        while "idle" not in subprocess.run(["sinfo", "-h"], env=environment, capture_output=True, text=True, timeout=LIMIT).stdout:
            assert time.monotonic() < deadline, [one.read_text()[-2000:] for one in folder.glob("*.log")]
            time.sleep(0.2)
        yield environment
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(LIMIT)


def srun(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(["srun", *words], env=environment, capture_output=True, text=True, timeout=LIMIT)


def test_ranks_of_a_real_srun(slurm):
    done = srun(slurm, "--overcommit", "-n", "2", *COMMAND, "-v", "--", "sh", "-c", "echo rank $SLURM_LOCALID")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0", "rank 1"]
    for local in range(2):
        assert f"local rank {local} of 2 under srun: " in done.stderr


def test_a_batch_script_is_no_rank_and_its_steps_are(slurm, tmp_path):
    words = " ".join(f"'{word}'" for word in [*COMMAND, "-v", "--", "true"])
    script, told = tmp_path / "script", tmp_path / "told"
    script.write_text(f"#!/bin/sh\necho batch $SLURM_LOCALID\n{words}\necho step\nsrun {words}\n")
    done = subprocess.run(
        ["sbatch", "-W", "--overcommit", "-n", "2", "-o", str(told), str(script)], env=slurm, capture_output=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr
    batch, _, step = told.read_text().partition("step\n")
    assert batch.startswith("batch 0\n") and "local rank" not in batch
    assert "local rank 1 of 2 under srun: " in step
