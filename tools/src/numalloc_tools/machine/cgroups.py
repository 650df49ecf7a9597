"""The limits of a process's cgroup, version 1 or 2: a container's, a service's or a batch job's."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from numalloc_tools.machine.files import Files, as_number
from numalloc_tools.machine.lists import numbers

_UNLIMITED = 1 << 62  # version 1 writes the largest number of pages


@dataclass(frozen=True)
class Cgroup:
    version: int | None  # None: no cgroup is visible
    path: str
    memory_limit: int | None  # bytes, the smallest limit of this cgroup and those above it
    memory_high: int | None  # above it the kernel slows the cgroup down
    memory_used: int | None  # without file cache that is idle
    cpu_quota: float | None  # CPUs' worth of time
    cpus: list[int] | None  # of the cpuset controller
    mems: list[int] | None


NOTHING = Cgroup(None, "", None, None, None, None, None, None)


@dataclass(frozen=True)
class _Place:
    """The folders with a controller's files for the process: its own first, then those above it."""

    folders: list[str]

    def least(self, files: Files, name: str) -> int | None:
        found = [limit for folder in self.folders if (limit := as_number(files.text(f"{folder}/{name}"))) is not None]
        return min((limit for limit in found if 0 <= limit < _UNLIMITED), default=None)

    def first(self, files: Files, *names: str) -> str | None:
        for folder in self.folders:
            for name in names:
                if text := files.text(f"{folder}/{name}"):
                    return text
        return None


def read(files: Files, process: str = "self") -> Cgroup:
    paths: dict[str, str] = {}
    for line in (files.text(f"/proc/{process}/cgroup") or "").splitlines():
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        for controller in controllers.split(",") if controllers else ["unified"]:
            paths[controller] = path
    mounts = _mounts(files, process)
    places = {name: place for name, path in paths.items() if (place := _place(files, path, mounts.get(name, [])))}
    if "memory" in places or "cpuset" in places or "cpu" in places:
        return _first_version(files, paths, places)
    if "unified" in places:
        return _second_version(files, paths["unified"], places["unified"])
    return NOTHING


def _mounts(files: Files, process: str) -> dict[str, list[tuple[str, str]]]:
    """For each controller, its mount point and the cgroup that is the root there."""
    found: dict[str, list[tuple[str, str]]] = {}
    for line in (files.text(f"/proc/{process}/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        words, kind = before.split(), after.split()
        if len(words) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            found.setdefault("unified", []).append((words[4], words[3]))
        elif kind[0] == "cgroup":
            for controller in kind[2].split(","):
                found.setdefault(controller, []).append((words[4], words[3]))
    return found


def _place(files: Files, path: str, mounts: list[tuple[str, str]]) -> _Place | None:
    for mounted_at, root in mounts:
        below = PurePosixPath(path)
        if below.is_relative_to(root):
            below = below.relative_to(root)
        elif root != "/" or ".." in below.parts:
            below = PurePosixPath()  # a container that sees only its own cgroup
        inside = PurePosixPath(str(below).lstrip("/"))
        folders = [f"{mounted_at}/{part}".rstrip("/.") for part in (inside, *inside.parents)]
        folders = [folder for folder in dict.fromkeys(folders) if files.path(folder).is_dir()]
        if folders:
            return _Place(folders)
    return None


def _second_version(files: Files, path: str, place: _Place) -> Cgroup:
    used = as_number(files.text(f"{place.folders[0]}/memory.current"))
    quotas = [_quota(*(files.text(f"{folder}/cpu.max") or "").split()) for folder in place.folders]
    return Cgroup(
        2,
        path,
        place.least(files, "memory.max"),
        place.least(files, "memory.high"),
        _without_idle(files, used, place.folders[0]),
        min((quota for quota in quotas if quota), default=None),
        _list(place.first(files, "cpuset.cpus.effective")),
        _list(place.first(files, "cpuset.mems.effective")),
    )


def _first_version(files: Files, paths: dict[str, str], places: dict[str, _Place]) -> Cgroup:
    memory, cpu, cpuset = (places.get(name, _Place([])) for name in ("memory", "cpu", "cpuset"))
    used = as_number(memory.first(files, "memory.usage_in_bytes"))
    quotas = [
        _quota(files.text(f"{folder}/cpu.cfs_quota_us") or "", files.text(f"{folder}/cpu.cfs_period_us") or "") for folder in cpu.folders
    ]
    return Cgroup(
        1,
        paths.get("memory") or paths.get("cpuset") or paths.get("cpu") or "",
        memory.least(files, "memory.limit_in_bytes"),
        None,
        _without_idle(files, used, memory.folders[0]) if memory.folders else None,
        min((quota for quota in quotas if quota), default=None),
        _list(cpuset.first(files, "cpuset.effective_cpus", "cpuset.cpus")),
        _list(cpuset.first(files, "cpuset.effective_mems", "cpuset.mems")),
    )


def _quota(quota: str = "", period: str = "") -> float | None:
    if not quota.isdecimal() or not period.isdecimal() or not int(period):
        return None
    return int(quota) / int(period)


def _without_idle(files: Files, used: int | None, folder: str) -> int | None:
    """Subtracts idle file cache, which the kernel counts as used but can drop without harm."""
    if used is None:
        return None
    for line in (files.text(f"{folder}/memory.stat") or "").splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file" and value.isdecimal():
            return max(0, used - int(value))
    return used


def _list(text: str | None) -> list[int] | None:
    try:
        return numbers(text) if text else None
    except ValueError:
        return None
