"""What a test may see of the machine and of who started the tests: the same each time."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OFFLINE = Path(__file__).with_name("offline.py")
SEED = 1  # of the gate; --full draws a fresh one
PRESETS = ("release", "ubsan", "tsan")
LEAST_DISK = 3 << 30  # bytes that the builds of these and the tests take
# Of the caller's environment: where programs are, compiler caches, and what this machine's libraries need to be right.
KEPT = ("PATH", "CI")
KEPT_PREFIXES = ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER", "CCACHE_", "OPENBLAS_")
# For stages that fetch, all but what changes how programs are built and run.
LEFT_OUT_PREFIXES = ("LD_", "NUMALLOC_", "MALLOC_", "GLIBC_TUNABLES", "GTEST_", "PYTEST_", "PYTHON", "CC", "CXX", "CFLAGS", "LDFLAGS")
# Soft limits of a fresh login on Debian; where the hard limit is lower, that.
LIMITS = {
    "stack": 8 << 20,
    "nofile": 1024,
    "core": 0,
    "as": resource.RLIM_INFINITY,
    "data": resource.RLIM_INFINITY,
    "fsize": resource.RLIM_INFINITY,
}
THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PYTHONS_OWN = (signal.SIGPIPE, signal.SIGXFSZ)  # which it ignores itself, and gives back to programs that it starts
NOWHERE = "http://127.0.0.1:9"  # the discard port: a proxy that refuses


def inherit_nothing() -> dict[str, str]:
    """Signals, their mask, the umask, soft limits: as in a fresh login. Returns what was not."""
    ignored = [number for number in signal.valid_signals() if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        if number not in PYTHONS_OWN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(0o022)
    names = {number: number.name for number in signal.Signals}
    said = [names.get(number, f"signal {int(number)}") for number in ignored if number not in PYTHONS_OWN]
    return {"ignored signals when started": " ".join(said) or "none", "limits when started": " ".join(reset_limits()) or "usual"}


def reset_limits() -> list[str]:
    """Those that were others."""
    found = []
    for name, wanted in LIMITS.items():
        number = getattr(resource, f"RLIMIT_{name.upper()}")
        soft, hard = resource.getrlimit(number)
        below = hard != resource.RLIM_INFINITY and not 0 <= wanted <= hard
        resource.setrlimit(number, (hard if below else wanted, hard))
        if soft != wanted:
            found.append(f"{name} {'unlimited' if soft == resource.RLIM_INFINITY else soft}")
    return found


def cpus() -> int:
    return len(os.sched_getaffinity(0))


def answer(command: list[str], environment: dict[str, str] | None = None) -> str | None:
    """What it prints; None where it fails."""
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def network_can_be_cut() -> bool:
    return answer(["unshare", "--net", sys.executable, str(OFFLINE), "true"]) is not None


def is_private(folder: Path) -> bool:
    """Whether other users cannot read it."""
    return folder.stat().st_mode & 0o5 != 0o5 or any(parent.stat().st_mode & 0o1 == 0 for parent in folder.parents)


def has_history(environment: dict[str, str]) -> bool:
    """Whether git knows the commits before this one: not in a shallow clone, nor in another user's."""
    return answer(["git", "-C", str(ROOT), "rev-parse", "--is-shallow-repository"], environment) == "false"


class Surroundings:
    """Folders, environment and network of the tests. The folder is short: paths of sockets have 107 characters."""

    def __init__(self, folder: Path, seed: int):
        self.folder = folder
        self.seed = seed
        self.can_cut = network_can_be_cut()
        for name in ("home", "tmp"):
            (folder / name).mkdir()
        (folder / "tmp").chmod(0o1777)  # tests run programs as nobody
        folder.chmod(0o755)

    def environment(self, online: bool, full: bool) -> dict[str, str]:
        def stays(name: str) -> bool:
            return name in KEPT or name.startswith(KEPT_PREFIXES) or (online and not name.startswith(LEFT_OUT_PREFIXES))

        found = {name: value for name, value in os.environ.items() if stays(name)}
        # What the lab has fetched and built is the user's, so that a second clone needs no network.
        cache = os.environ.get("XDG_CACHE_HOME") or (
            os.path.expanduser("~/.cache") if os.environ.get("HOME") else str(ROOT / "build/.cache")
        )
        found |= {
            "PATH": f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/local/sbin:/usr/sbin:/sbin",
            "HOME": os.environ.get("HOME", str(self.folder / "home")) if online else str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "XDG_CACHE_HOME": cache,
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
            "PYTHONPYCACHEPREFIX": str(self.folder / "pycache"),
            "NUMALLOC_TEST_SEED": str(self.seed),
        }
        if full:
            found["NUMALLOC_TEST_FULL"] = "1"
        if not online and not self.can_cut:
            found |= dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), NOWHERE)
            found["no_proxy"] = "localhost,127.0.0.1"
        return found

    def around(self, online: bool) -> list[str]:
        return [] if online or not self.can_cut else ["unshare", "--net", sys.executable, str(OFFLINE)]

    def conditions(self) -> set[str]:
        """What tests/skips.toml may name as `where`."""
        found = {
            "root": os.geteuid() == 0,
            "not root": os.geteuid() != 0,
            "one CPU": cpus() == 1,
            # In a chroot those of mounts are refused alone.
            "no namespaces": not self.can_cut or answer(["unshare", "--mount", "true"]) is None,
            "no huge pages": not THP.is_file(),
            "no history": not has_history(self.environment(online=False, full=False)),
            "several nodes": len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) > 1,
            "many mappings": int(Path("/proc/sys/vm/max_map_count").read_text()) > 300_000,
            "private clone": any(map(is_private, [ROOT / "tools", *ROOT.glob(".venv/lib/python*/site-packages/typer")])),
        }
        return {name for name, holds in found.items() if holds}


def folder_for_programs() -> Path:
    """Tests build programs in their folders and run them, one of them setuid."""
    forbids = os.ST_NOEXEC | os.ST_NOSUID
    shared = [path for path in map(Path, ("/tmp", "/var/tmp")) if path.is_dir() and not os.statvfs(path).f_flag & forbids]
    return [*shared, ROOT / "build"][0]


def disk_wanted() -> int:
    """Bytes; less where the builds are there."""
    built = [path for preset in PRESETS for path in (ROOT / "build" / preset).rglob("*")]
    return LEAST_DISK - sum(path.lstat().st_size for path in built)


@contextmanager
def made(seed: int) -> Iterator[Surroundings]:
    folder = Path(tempfile.mkdtemp(prefix="gate-", dir=folder_for_programs()))
    try:
        yield Surroundings(folder, seed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def processor_ticks() -> tuple[int, int]:
    """Of all the machine's processors since the boot: stolen by the host, and in all."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return (ticks[7] if len(ticks) > 7 else 0), sum(ticks[:8])


class Machine:
    """What a reader of a failure asks about the machine."""

    def __init__(self, inherited: dict[str, str]):
        self._inherited = inherited
        self._before = processor_ticks()

    def facts(self) -> dict[str, str]:
        (stolen, all_ticks), (stolen_before, all_before) = processor_ticks(), self._before
        memory = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        return {
            "processors": str(cpus()),
            "load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
            "steal": f"{100 * (stolen - stolen_before) / max(1, all_ticks - all_before):.1f} %",
            "memory available": f"{int(memory['MemAvailable'].split()[0]) >> 10} MiB",
            "disk free": f"{shutil.disk_usage(ROOT).free >> 20} MiB",
            "kernel": os.uname().release,
            "huge pages": THP.read_text().partition("[")[2].partition("]")[0] if THP.is_file() else "none",
            **self._inherited,
        }

    def line(self) -> str:
        return "; ".join(f"{name} {value}" for name, value in self.facts().items())
