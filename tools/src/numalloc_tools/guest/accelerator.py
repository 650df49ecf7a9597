"""How the guest's instructions are executed: by KVM if a stock kernel really boots with it, otherwise by QEMU's
translator. That /dev/kvm can be opened proves nothing: inside another virtual machine KVM often hangs."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from numalloc_tools import cache
from numalloc_tools.guest.architecture import Architecture
from numalloc_tools.problem import Problem

KINDS = ("auto", "tcg", "kvm")
THREADS = ("auto", "single", "multi")
_PROBE_SECONDS = 6  # with KVM a kernel boots in one second


@dataclass(frozen=True)
class Accelerator:
    arguments: tuple[str, ...]
    cpu: str  # QEMU's -cpu: a model and its flags
    program: str = ""  # another QEMU than the system's
    environment: dict[str, str] = field(default_factory=dict, hash=False)  # variables that this QEMU needs


def qemu(architecture: Architecture) -> str:
    path = shutil.which(architecture.qemu)
    if not path:
        raise Problem(f"{architecture.qemu} is missing; install the Debian package {architecture.qemu_package}", 125)
    return path


def choose(kind: str, threads: str, cpus: int, kernel: Path, architecture: Architecture) -> Accelerator:
    if kind == "kvm" and architecture.foreign:
        raise Problem(f"--accel: kvm does not run {architecture.name} on this machine; accepted: auto, tcg")
    if kind == "kvm" or (kind == "auto" and not architecture.foreign and _kvm_boots(kernel, architecture)):
        return Accelerator(("-accel", "kvm"), "host")
    if threads == "auto":
        # One host thread a guest CPU pays up to about twice the host's CPUs; beyond that they are in
        # each other's way, and one thread that takes turns is several times faster.
        threads = "multi" if cpus <= 2 * (os.cpu_count() or 1) else "single"
    return Accelerator(("-accel", f"tcg,thread={threads}"), architecture.translated_cpu)


def _kvm_boots(kernel: Path, architecture: Architecture) -> bool:
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    key = hashlib.sha256(f"{boot} {kernel} {qemu(architecture)}".encode()).hexdigest()[:16]
    answer = cache.directory("kvm") / key
    if not answer.exists():
        verdict = "boots" if _probe(kernel, architecture) else "does not boot"
        answer.write_text(verdict + "\n")
    return answer.read_text().strip() == "boots"


def _probe(kernel: Path, architecture: Architecture) -> bool:
    """A kernel without a root file system panics, and reports that, once it has booted."""
    with tempfile.NamedTemporaryFile(prefix="numalloc-kvm-") as console:
        command = [
            qemu(architecture),
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-machine",
            architecture.board,
            "-accel",
            "kvm",
            "-cpu",
            "host",
            "-m",
            "256M",
            "-smp",
            "2",
            "-kernel",
            str(kernel),
            "-append",
            f"console={architecture.console} panic=-1",
            "-no-reboot",
            "-serial",
            f"file:{console.name}",
        ]
        try:
            subprocess.run(command, timeout=_PROBE_SECONDS, capture_output=True)
        except subprocess.TimeoutExpired:
            return False
        return b"Unable to mount root fs" in console.read()
