"""CPUs: packages, cores, threads of a core, and the caches that CPUs share."""

from dataclasses import dataclass

from numalloc_tools.machine.files import Files, ending_number
from numalloc_tools.machine.lists import ranges
from numalloc_tools.machine.nodes import online_cpus

CPUS = "/sys/devices/system/cpu"
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Cache:
    level: int
    kind: str  # Data, Instruction, Unified
    size: int
    count: int
    cpus_each: int


@dataclass(frozen=True)
class Processor:
    model: str
    cpus: list[int]
    packages: dict[int, list[int]]  # CPUs of each
    cores: int
    caches: list[Cache]

    @property
    def threads_per_core(self) -> int:
        return max(1, len(self.cpus) // self.cores) if self.cores else 1

    def packages_of(self, cpus: list[int]) -> list[int]:
        wanted = set(cpus)
        return [number for number, members in self.packages.items() if wanted & set(members)]


def read(files: Files) -> Processor:
    cpus = online_cpus(files)
    packages: dict[int, list[int]] = {}
    cores: set[str] = set()
    groups: dict[tuple[int, str, int], dict[str, int]] = {}
    for cpu in cpus:
        topology = f"{CPUS}/cpu{cpu}/topology"
        package = files.number(f"{topology}/physical_package_id")
        packages.setdefault(max(0, package or 0), []).append(cpu)  # -1 if the firmware does not tell
        siblings = files.text(f"{topology}/core_cpus_list") or files.text(f"{topology}/thread_siblings_list")
        cores.add(siblings or str(cpu))
        for index in files.names(f"{CPUS}/cpu{cpu}/cache", "index"):
            _count_cache(files, f"{CPUS}/cpu{cpu}/cache/{index}", cpu, groups)
    caches = [Cache(level, kind, size, len(shared), max(shared.values())) for (level, kind, size), shared in sorted(groups.items())]
    return Processor(_model(files), cpus, dict(sorted(packages.items())), len(cores), caches)


def _count_cache(files: Files, folder: str, cpu: int, groups: dict) -> None:
    text = files.text(f"{folder}/size") or ""
    level, size = files.number(f"{folder}/level"), ending_number(text.rstrip("KMG"))
    if level is None or size is None:
        return
    shared = files.numbers(f"{folder}/shared_cpu_list") or [cpu]
    key = (level, files.text(f"{folder}/type") or "", size * _UNITS.get(text[-1:], 1))
    groups.setdefault(key, {})[ranges(shared)] = len(shared)


def _model(files: Files) -> str:
    for line in (files.text("/proc/cpuinfo") or "").splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() in ("model name", "Model", "cpu model"):
            return value.strip()
    return ""
