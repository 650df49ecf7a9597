"""How every process ends that a command starts, however deep, and whoever waits for it.

The kernel's process connector tells it without touching the processes, so that debuggers among them
work; it is for root outside of containers. Elsewhere strace stands by, whose seccomp filter lets all system
calls but execve run at full speed."""

import ctypes
import errno
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

CRASHES = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS"})

_NETLINK_CONNECTOR = 11
_LISTEN = 1
_FORK, _EXEC, _COMM, _EXIT = 0x1, 0x2, 0x200, 0x80000000
_HEADER = 16 + 20  # netlink's and the connector's
_RECEIVE_BYTES = 16 << 20


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


class Connector:
    """Listens from now on; `end` gives (process, signal) with how often. Members are this process's descendants."""

    name = ""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_CONNECTOR)
        self._socket.setsockopt(socket.SOL_SOCKET, 33, _RECEIVE_BYTES)  # SO_RCVBUFFORCE
        self._socket.bind((0, 1))  # the kernel chooses the address, the group is the connector's
        self._socket.send(struct.pack("=IHHII IIIIHH I", 40, 3, 0, 0, 0, 1, 1, 0, 0, 4, 0, _LISTEN))
        self._socket.settimeout(0.1)
        self._names: dict[int, str] = {os.getpid(): "runner"}
        self._ended: dict[int, str] = {}
        self._found: Counter[tuple[str, str]] = Counter()
        self._stop = False
        self.lost = False
        self.seen = 0
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def prefix(self, _preload: str) -> list[str]:
        return []

    def end(self) -> Counter[tuple[str, str]]:
        time.sleep(0.1)
        self._stop = True
        self._thread.join()
        self._socket.close()
        return self._found

    def _listen(self) -> None:
        while not self._stop:
            try:
                data = self._socket.recv(65536)
            except TimeoutError:
                continue
            except OSError as error:
                self.lost = self.lost or error.errno == errno.ENOBUFS
                continue
            self._take(data[_HEADER:])

    def _take(self, event: bytes) -> None:
        what, process = struct.unpack_from("=I", event)[0], struct.unpack_from("=4I", event, 16)
        if what == _FORK:
            _, parent, thread, child = process
            if parent in self._names and thread == child:
                self.seen += 1
                self._names[child] = self._names[parent]
        elif what in (_EXEC, _COMM) and process[1] in self._names and process[0] == process[1]:
            self._names[process[1]] = _comm(process[1]) or self._names[process[1]]
        elif what == _EXIT and process[1] in self._names and process[1] != os.getpid():
            # A thread's own end counts only if a signal ended it, and with it the process.
            if number := process[2] & 0x7F:
                if process[1] not in self._ended:
                    name = _comm(process[1]) if process[0] == process[1] else None
                    self._found[name or self._names[process[1]], signal_name(number)] += 1
                self._ended[process[1]] = signal_name(number)
            if process[0] == process[1]:
                self._ended.pop(process[1], None)


class Strace:
    """The same by tracing: `prefix` goes before the command."""

    name = "strace"
    lost = False

    def __init__(self, log: Path) -> None:
        self._log = log
        self._count = 0

    def prefix(self, preload: str) -> list[str]:
        self._count += 1
        own = ["-E", f"LD_PRELOAD={preload}"] if preload else []  # for the command, and not for strace
        # -D: the command is this process's child, and strace stands aside.
        return [
            "strace",
            "-D",
            "-f",
            "--seccomp-bpf",
            "-q",
            "-e",
            "trace=execve",
            "-e",
            "signal=!chld,urg,prof,alrm",
            "-s",
            "200",
            "-o",
            f"{self._log}.{self._count}",
            *own,
            "--",
        ]

    def end(self) -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        for log in self._log.parent.glob(f"{self._log.name}.*"):
            names: dict[str, str] = {}
            for line in log.read_text(errors="replace").splitlines():
                pid, _, rest = line.partition(" ")
                if started := re.match(r'\s*execve\("([^"]*)"', rest):
                    names[pid] = os.path.basename(started[1])[:15]
                elif killed := re.search(r"\+\+\+ killed by (SIG\w+)", rest):
                    found[names.get(pid, "?"), killed[1]] += 1
        return found


class Nothing:
    """For programs that trace others, where only tracing would tell."""

    name = ""
    lost = False

    def prefix(self, _preload: str) -> list[str]:
        return []

    def end(self) -> Counter[tuple[str, str]]:
        return Counter()


def _comm(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


def best() -> str:
    """connector, strace or nothing: what works here, by trying it."""
    try:
        watch = Connector()
        subprocess.run(["sh", "-c", "kill -USR1 $$"])
        if watch.end():
            return "connector"
    except OSError:
        pass
    if shutil.which("strace"):
        done = subprocess.run(["strace", "-D", "-f", "--seccomp-bpf", "-q", "-e", "trace=none", "true"], capture_output=True)
        if done.returncode == 0:
            return "strace"
    return "nothing"


def watch(kind: str, traces: bool, folder: Path) -> Connector | Strace | Nothing:
    if kind == "connector":
        return Connector()
    return Strace(folder / "strace") if kind == "strace" and not traces else Nothing()


def adopt_orphans() -> None:
    """What a daemon leaves behind stays in this process's tree (PR_SET_CHILD_SUBREAPER)."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)
