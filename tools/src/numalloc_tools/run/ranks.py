"""Ranks under mpirun and srun: those on one machine are distributed over its nodes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from numalloc_tools.launch.nodes import Nodes
from numalloc_tools.machine.calls import Affinity
from numalloc_tools.machine.lists import ranges
from numalloc_tools.problem import Problem

# Variables that launchers set for each rank: its number on this machine, and the number of ranks there.
_LAUNCHERS = (
    ("Open MPI", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("MPICH's Hydra", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("MVAPICH", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"),
    ("PMI", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"),
)


@dataclass(frozen=True)
class Rank:
    launcher: str
    local: int
    of: int  # 0: the launcher does not tell


def rank(environment: Mapping[str, str]) -> Rank | None:
    for launcher, number, size in _LAUNCHERS:
        if (found := _number(environment, number)) is not None:
            return Rank(launcher, found, _number(environment, size) or 0)
    # A batch script has a SLURM_LOCALID too, 0. A process that srun started also has a step.
    local, step = _number(environment, "SLURM_LOCALID"), _number(environment, "SLURM_STEP_ID")
    if local is None or step is None:
        return None
    return Rank("srun", local, _slurm_tasks(environment))


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isdecimal() else None


def _slurm_tasks(environment: Mapping[str, str]) -> int:
    """The number of ranks on this machine, from a SLURM_STEP_TASKS_PER_NODE such as 4(x2),3."""
    counts: list[int] = []
    for part in environment.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        if match := re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part):
            counts += [int(match[1])] * int(match[2] or 1)
    machine = _number(environment, "SLURM_NODEID") or 0
    return counts[machine] if machine < len(counts) else 0


def place(environment: Mapping[str, str], machine: Nodes, asked: bool) -> tuple[Affinity | None, str]:
    """The rank's CPUs, or none, and a line to report. Respects the binding of a launcher that has bound the rank."""
    found = rank(environment)
    if found is None:
        if asked:
            names = ", ".join(number for _, number, _ in _LAUNCHERS)
            raise Problem(f"--ranks: none of {names} and SLURM_LOCALID with SLURM_STEP_ID is set; accepted: under mpirun or srun")
        return None, ""
    here = f"local rank {found.local} of {found.of or 'several'} under {found.launcher}"
    if len(machine.cpus) <= 1:
        where = "one node" if machine.one else f"node {ranges(sorted(machine.cpus), steps=False)}"
        return None, f"{here}: it has only the CPUs of {where}, and stays there"
    if found.of == 1 and not asked:
        return None, f"{here}: it is the only rank on the machine, and is not bound"
    candidates = sorted(machine.cpus)
    node = candidates[found.local % len(candidates)]
    return Affinity(machine.cpus[node]), f"{here}: runs on node {node}"
