"""A program that runs with the heap profile on, and what it leaves behind."""

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from numalloc_tools.problem import Problem

# Reads the tables by which stacks are unwound; C++ programs have it, others get it by this.
UNWINDER = "libgcc_s.so.1"


@dataclass(frozen=True)
class Recording:
    files: list[Path]  # one a process
    exit_status: int  # the program's, as a shell says it


def found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise Problem(f"{program}: there is no such program; accepted: one in PATH, or a path to one", 127)
    return path


def record(command: list[str], library: Path, sample: str, folder: Path, stdout=None, on_signal: bool = False) -> Recording:
    """`folder` is empty; `stdout` is where the program's own output goes, None for ours."""
    program = found(command[0])
    preloaded = [str(library), UNWINDER, *filter(None, [os.environ.get("LD_PRELOAD")])]
    environment = os.environ | {
        "LD_PRELOAD": ":".join(preloaded),
        "NUMALLOC_PROFILE": sample,
        "NUMALLOC_PROFILE_SIGNALS": "1" if on_signal else "0",
        "NUMALLOC_PROFILE_FILE": str(folder).replace("%", "%%") + "/%p.pb",
    }
    # The terminal sends an interrupt to the program as well: what it makes of it is the program's to say.
    ours = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        process = subprocess.Popen([program, *command[1:]], env=environment, stdout=stdout, preexec_fn=_own_signals(ours))
        forward = {number: signal.signal(number, lambda n, _: process.send_signal(n)) for number in (signal.SIGTERM, signal.SIGHUP)}
        status = process.wait()
    except OSError as error:
        raise Problem(f"{program}: {error.strerror}; accepted: a program that can be run here", 126) from None
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
    for number, handler in forward.items():
        signal.signal(number, handler)
    files = sorted(folder.glob("*.pb"), key=lambda path: (path.stem != str(process.pid), path.stem))
    return Recording(files, 128 - status if status < 0 else status)


def _own_signals(handlers: dict):
    def reset() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler if handler in (signal.SIG_IGN, signal.SIG_DFL) else signal.SIG_DFL)

    return reset
