"""Runs a program with the heap profile on, and finds the files that it writes."""

import os
from dataclasses import dataclass
from pathlib import Path

from numalloc_tools.launch import Launch, program
from numalloc_tools.launch.supervise import Family, Start, worst

# The library that unwinds stacks: C++ programs have it, others need it preloaded.
UNWINDER = "libgcc_s.so.1"


@dataclass(frozen=True)
class Recording:
    files: list[Path]  # one per process
    exit_status: int  # the program's, as a shell reports it


def record(command: list[str], library: Path, sample: str, folder: Path, stdout=None, on_signal: bool = False) -> Recording:
    """`folder` is empty; `stdout` receives the program's own output, None: this command's."""
    preloaded = [str(library), UNWINDER, *filter(None, [os.environ.get("LD_PRELOAD")])]
    environment = os.environ | {
        "LD_PRELOAD": ":".join(preloaded),
        "NUMALLOC_PROFILE": sample,
        "NUMALLOC_PROFILE_SIGNALS": "1" if on_signal else "0",
        "NUMALLOC_PROFILE_FILE": str(folder).replace("%", "%%") + "/%p.pb",
    }
    family = Family([Start(program.find(command[0]), command, environment, Launch({}), stdout=stdout)])
    try:
        (status,) = family.run()
    finally:
        family.close()
    files = sorted(folder.glob("*.pb"), key=lambda path: (path.stem != str(family.pids[0]), path.stem))
    return Recording(files, worst([status]))
