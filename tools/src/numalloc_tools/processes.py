"""This program's own command, and facts about other processes from /proc."""

import os
import pwd
import signal
import sys
from pathlib import Path


def own_command() -> list[str]:
    """The command that runs this tool."""
    path = Path(sys.argv[0])
    if path.name == "numalloc" and path.is_file():
        return [str(path.resolve())]
    return [sys.executable, "-m", "numalloc_tools"]


def text(pid: int, file: str) -> str:
    """Names and paths in it may contain any bytes. Raises OSError if the process has ended or is another user's."""
    return Path(f"/proc/{pid}/{file}").read_text(errors="replace")


def stat(pid: int, thread: int | None = None) -> list[str]:
    """The fields after the name, of the process or of one of its threads; number 0 is the state."""
    return text(pid, "stat" if thread is None else f"task/{thread}/stat").rpartition(")")[2].split()


def threads(pid: int) -> dict[int, list[str]]:
    """The fields of each of its running threads; none if the process has ended."""
    found = {}
    for thread in _thread_numbers(pid):
        try:
            found[thread] = stat(pid, thread)
        except OSError:
            continue
    return found


def family(pid: int) -> list[int]:
    """The process and all its descendants."""
    found = [pid]
    for one in found:
        for thread in _thread_numbers(one):
            try:
                found += map(int, text(one, f"task/{thread}/children").split())
            except OSError:  # it has ended, or this kernel does not tell
                continue
    return list(dict.fromkeys(found))


def _thread_numbers(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def refusal(folder: Path) -> str:
    """Why the kernel does not show what is in a process, by its folder in /proc."""
    # Not the folder's owner: that of a process that is not to be inspected is root.
    try:
        status = (folder / "status").read_text(errors="replace")
    except OSError:
        return "has ended"
    owner = int(status.partition("\nUid:")[2].split()[0])
    if os.geteuid() in (0, owner):
        return (
            "has more privileges than the caller, or does not let itself be inspected (PR_SET_DUMPABLE), and the kernel does not show "
            "its memory; accepted: a process without them"
        )
    try:
        name = pwd.getpwuid(owner).pw_name
    except KeyError:
        name = str(owner)
    return f"belongs to {name}, and the kernel does not show you its memory; accepted: your own processes, or any process as root"


def signal_name(number: int) -> str:
    """SIGTERM, or "signal 40", which has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
