"""How the guest's instructions are carried out: by KVM where a stock kernel really boots with it, else by
QEMU's translator. That /dev/kvm opens proves nothing: inside another virtual machine it often hangs."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from numalloc_tools.lab import cache
from numalloc_tools.problem import Problem

QEMU = "qemu-system-x86_64"
KINDS = ("auto", "tcg", "kvm")
THREADS = ("auto", "single", "multi")
_PROBE_SECONDS = 6  # with KVM a kernel is up in one


@dataclass(frozen=True)
class Accelerator:
    arguments: tuple[str, ...]
    cpu_model: str
    cpu_flags: str  # for -device
    cpu_argument: str  # for -cpu


def qemu() -> str:
    path = shutil.which(QEMU)
    if not path:
        raise Problem(f"{QEMU} is missing; install the Debian package qemu-system-x86", 125)
    return path


def choose(kind: str, threads: str, cpus: int, kernel: Path) -> Accelerator:
    if kind == "kvm" or (kind == "auto" and _kvm_boots(kernel)):
        return Accelerator(("-accel", "kvm"), "host", "", "host")
    if threads == "auto":
        # One host thread a guest CPU pays up to about twice the host's CPUs; beyond that they are in
        # each other's way, and one thread that takes turns is several times faster.
        threads = "multi" if cpus <= 2 * (os.cpu_count() or 1) else "single"
    # rep stosb and rep movsb are slow in the translator; without these flags the C library avoids them.
    return Accelerator(("-accel", f"tcg,thread={threads}"), "max", ",erms=off,fsrm=off", "max,-erms,-fsrm")


def _kvm_boots(kernel: Path) -> bool:
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    key = hashlib.sha256(f"{boot} {kernel} {qemu()}".encode()).hexdigest()[:16]
    answer = cache.directory("kvm") / key
    if not answer.exists():
        verdict = "boots" if _probe(kernel) else "does not boot"
        answer.write_text(verdict + "\n")
    return answer.read_text().strip() == "boots"


def _probe(kernel: Path) -> bool:
    """A kernel without a root file system panics, and says so, once it has booted."""
    with tempfile.NamedTemporaryFile(prefix="numalloc-kvm-") as console:
        command = [
            qemu(), "-nodefaults", "-no-user-config", "-display", "none", "-accel", "kvm", "-cpu", "host",
            "-m", "256M", "-smp", "2", "-kernel", str(kernel), "-append", "console=ttyS0 panic=-1",
            "-no-reboot", "-serial", f"file:{console.name}",
        ]  # fmt: skip
        try:
            subprocess.run(command, timeout=_PROBE_SECONDS, capture_output=True)
        except subprocess.TimeoutExpired:
            return False
        return b"Unable to mount root fs" in console.read()
