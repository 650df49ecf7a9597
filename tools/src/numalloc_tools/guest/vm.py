"""Runs one virtual machine: starts QEMU, separates the guest's streams, and cleans up."""

import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from numalloc_tools.guest import accelerator, clock
from numalloc_tools.guest.architecture import X86_64
from numalloc_tools.guest.image import Image, busybox
from numalloc_tools.guest.machine import Machine
from numalloc_tools.problem import Problem

LAB_FAILED = 125
TIMED_OUT = 124
PANIC = b"Kernel panic - not syncing"
LAST_WORDS_SECONDS = 3  # until a panicked kernel has printed its stack
LOOK_SECONDS = 1
KERNEL_BYTES = 64 << 20
_INIT = Path(__file__).with_name("guest_init.sh")
Sink = Callable[[bytes], None]


@dataclass
class Guest:
    """The program of the machine, and the switches of its kernel."""

    command: str  # a shell script
    thp: str = "madvise"
    autonuma: bool = False
    overcommit: str = "heuristic"
    cpuset_cpus: str = ""
    cpuset_mems: str = ""
    sysctl: dict[str, str] = field(default_factory=dict)
    kernel_arguments: list[str] = field(default_factory=list)
    stdin: bytes = b""


@dataclass
class Outcome:
    status: int
    console: bytes
    seconds: float
    reason: str = ""  # the reason why the program has no exit status


class Deadline:
    """The time at which the machine is stopped; it may be postponed while the machine runs."""

    def __init__(self, seconds: float):
        self.at = time.monotonic() + seconds

    def extend(self, seconds: float) -> None:
        self.at = max(self.at, time.monotonic() + seconds)


OVERCOMMIT = {"heuristic": 0, "always": 1, "never": 2}


def end_in_order_on_signals() -> None:
    """SIGTERM and SIGHUP end this process as Ctrl-C does, so that it cleans up."""

    def end(number: int, _frame) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, end)


def run(
    machine: Machine,
    image: Image,
    guest: Guest,
    kernel: Path,
    acceleration: accelerator.Accelerator,
    deadline: Deadline,
    stdout: Sink,
    stderr: Sink,
    on_console: Sink = lambda _: None,
) -> Outcome:
    mark = f"numalloc-lab-end-{uuid.uuid4().hex}"
    try:
        work = Path(tempfile.mkdtemp(prefix="numalloc-lab-"))
    except OSError as error:
        raise Problem(f"no folder for temporary files is usable ({error.strerror}); name one with TMPDIR", LAB_FAILED) from None

    def take_console(chunk: bytes) -> None:
        # It has output, so it has read its files: remove them now, in case this process is killed.
        shutil.rmtree(work, ignore_errors=True)
        on_console(chunk)

    try:
        _add_init(image, guest, mark)
        archive = work / "initramfs"
        try:
            image.write(archive, work)
        except OSError as error:
            raise Problem(f"{work} cannot be written ({error.strerror}); name another folder with TMPDIR", LAB_FAILED) from None
        check_size(archive, machine)
        return _boot(machine, archive, guest, kernel, acceleration, deadline, stdout, stderr, take_console, mark)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def check_size(archive: Path, machine: Machine) -> None:
    """The kernel has the archive and the files unpacked from it in memory at the same time."""
    needed = 2 * archive.stat().st_size + KERNEL_BYTES
    if needed > machine.memory:
        raise Problem(
            f"--memory-per-node: {machine.memory >> 20}M in all, but the guest's files need {needed >> 20}M during unpacking; "
            "accepted: more than that"
        )


def _add_init(image: Image, guest: Guest, mark: str) -> None:
    settings = {
        "streams": " ".join(f"/dev/{line}" for line in image.architecture.streams),
        "thp": guest.thp,
        "autonuma": int(guest.autonuma),
        "overcommit": OVERCOMMIT[guest.overcommit],
        "cpuset_cpus": guest.cpuset_cpus,
        "cpuset_mems": guest.cpuset_mems,
        "end_mark": mark,
    }
    sysctl = "".join(f"{name.replace('.', '/')} {value}\n" for name, value in guest.sysctl.items())
    image.add_own("lab/init", _INIT.read_bytes(), 0o755)
    image.add_own("lab/busybox", Path(busybox(image.architecture)).read_bytes(), 0o755)
    image.add_own("lab/settings", "".join(f"{key}='{value}'\n" for key, value in settings.items()).encode())
    image.add_own("lab/sysctl", sysctl.encode())
    image.add_own("lab/command", guest.command.encode(errors="surrogateescape"))
    image.add_own("lab/stdin", guest.stdin)


def _boot(machine, archive, guest, kernel, acceleration, deadline, stdout, stderr, on_console, mark) -> Outcome:
    architecture = machine.architecture
    append = [
        "rdinit=/lab/init",
        f"console={architecture.console}",
        "panic=-1",
        # On a busy host CPUs stop for a while; the kernel would report that as its own fault.
        "loglevel=5",
        "nowatchdog",
        "rcupdate.rcu_cpu_stall_suppress=1",
        # As Debian's kernels have it. With Ubuntu's 32 the card's ports would come behind four that do not exist.
        "8250.nr_uarts=4",
        *guest.kernel_arguments,
    ]
    if architecture is X86_64:
        append[3:3] = [f"possible_cpus={machine.possible_cpus}", *clock.kernel_arguments()]
    pipes = {name: os.pipe() for name in ("console", "stdout", "stderr")}
    command = [
        acceleration.program or accelerator.qemu(architecture),
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
        "-machine",
        architecture.board,
        *acceleration.arguments,
        *machine.qemu_arguments(acceleration.cpu),
        "-kernel",
        str(kernel),
        "-initrd",
        str(archive),
        "-append",
        " ".join(append),
        *_serial_lines({name: write for name, (_, write) in pipes.items()}),
    ]
    if setpriv := shutil.which("setpriv"):  # if this process is killed, QEMU ends too
        command = [setpriv, "--pdeathsig", "KILL", *command]
    started = time.monotonic()
    complaints = tempfile.TemporaryFile()  # a full pipe without a reader would stop QEMU
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=complaints,
        env={**os.environ, **acceleration.environment},
        pass_fds=[write for _, write in pipes.values()],
        start_new_session=True,  # Ctrl-C reaches this process, which ends QEMU
    )
    for _, write in pipes.values():
        os.close(write)
    console = bytearray()
    streams = {
        "stdout": _Marked(mark, stdout),
        "stderr": _Marked(mark, stderr),
    }

    panicked_at: list[float] = []

    def take_console(chunk: bytes) -> None:
        console.extend(chunk)
        on_console(chunk)
        if not panicked_at and PANIC in console[-len(chunk) - len(PANIC) :]:
            panicked_at.append(time.monotonic())

    def finished() -> bool:
        # A panicked kernel restarts, which ends QEMU; on a busy host it may hang instead.
        if panicked_at and time.monotonic() - panicked_at[0] > LAST_WORDS_SECONDS:
            return True
        return all(stream.status is not None for stream in streams.values())

    try:
        in_time = _pump(
            {
                pipes["console"][0]: take_console,
                pipes["stdout"][0]: streams["stdout"].take,
                pipes["stderr"][0]: streams["stderr"].take,
            },
            finished,
            deadline,
        )
    finally:
        for read, _ in pipes.values():
            os.close(read)
        process.kill()
        process.wait()
    with complaints:
        complaints.seek(0)
        complaint = complaints.read().decode(errors="replace").strip()
    seconds = time.monotonic() - started
    for stream in streams.values():
        stream.finish()
    status = streams["stdout"].status
    if status is not None:
        return Outcome(status, bytes(console), seconds)
    if not in_time:
        return Outcome(TIMED_OUT, bytes(console), seconds, f"still running after {seconds:.0f} s")
    if not console and complaint:
        return Outcome(LAB_FAILED, b"", seconds, f"QEMU did not start: {complaint.splitlines()[-1]}")
    return Outcome(LAB_FAILED, bytes(console), seconds, "the machine stopped before the program ended")


def _serial_lines(writers: dict[str, int]) -> list[str]:
    """The console is on the machine's own serial port; the program's streams are on a serial card, whose
    ports share one interrupt properly."""
    arguments = []
    for name, descriptor in writers.items():
        arguments += ["-chardev", f"file,id={name},path=/dev/fd/{descriptor}"]
    return [*arguments, "-serial", "chardev:console", "-device", "pci-serial-2x,chardev1=stdout,chardev2=stderr"]


def _pump(readers: dict[int, Sink], finished: Callable[[], bool], deadline: Deadline) -> bool:
    """Passes on the data until the end (True), until all writers are gone (True) or until the time-out (False)."""
    with selectors.DefaultSelector() as selector:
        for descriptor, take in readers.items():
            selector.register(descriptor, selectors.EVENT_READ, take)
        while selector.get_map() and not finished():
            left = deadline.at - time.monotonic()
            if left <= 0:
                return False
            for key, _ in selector.select(min(left, LOOK_SECONDS)):
                chunk = os.read(key.fd, 65536)
                if chunk:
                    key.data(chunk)
                else:
                    selector.unregister(key.fd)
    return True


class _Marked:
    """A stream that ends with a mark and the exit status; passes on the bytes before the mark."""

    def __init__(self, mark: str, sink: Sink):
        self._mark = mark.encode()
        self._sink = sink
        self._held = b""
        self.status: int | None = None

    def take(self, chunk: bytes) -> None:
        if self.status is not None:
            return
        data = self._held + chunk
        at = data.find(self._mark)
        if at < 0:
            # The last bytes may be the beginning of the mark, which starts with a letter that is rare
            # enough at the end of a line of output not to delay anything noticeably.
            keep = next((n for n in range(min(len(self._mark), len(data)), 0, -1) if self._mark.startswith(data[-n:])), 0)
            self._held = data[len(data) - keep :]
            if ready := data[: len(data) - keep]:
                self._sink(ready)
            return
        if data[:at]:
            self._sink(data[:at])
        self._held = data[at:]
        # A busy host may lose a part of a mark; the guest writes several.
        if whole := re.search(re.escape(self._mark) + rb" (\d+)\n", self._held):
            self._held = b""
            self.status = int(whole[1])

    def finish(self) -> None:
        """The machine has ended: the bytes held back were not a mark."""
        if self.status is None and self._held and self._mark not in self._held:
            self._sink(self._held)
        self._held = b""
