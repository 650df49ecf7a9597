"""Programs that run from start to end: the time is wall time, and the output must equal that without a preload."""

import hashlib
import tempfile
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.launch.launcher import Ended, Running
from numalloc_tools.programs import Work

_expected: dict[tuple, str] = {}


def measured(
    command: list[str], allocator: Allocator, work: Work, folder: Path, output: str, environment: dict[str, str] | None = None
) -> Ended:
    """Runs `command` in `folder`. `output`, a file in it such as stdout, must equal that of the plain system."""
    key = (*command, *sorted((environment or {}).items()), _content(folder))
    if key not in _expected:
        with tempfile.TemporaryDirectory(prefix="numalloc-bench-") as plain:
            for path in folder.iterdir():
                (Path(plain) / path.name).write_bytes(path.read_bytes())
            _expected[key] = _digest(_run(command, Allocator("none"), work, Path(plain), environment), Path(plain) / output)
    ended = _run(command, allocator, work, folder, environment)
    if ended.status != "ok":
        return ended
    ended.figures["seconds"] = ended.figures["wall"]
    if _digest(ended, folder / output) != _expected[key]:
        ended.status, ended.reason = "wrong", f"{Path(command[0]).name}: its output differs from that without the allocator"
    return ended


def _run(command: list[str], allocator: Allocator, work: Work, folder: Path, environment: dict[str, str] | None) -> Ended:
    running = Running(command, allocator, work.limit, folder, work.sample, environment)
    try:
        return running.end()
    except BaseException:
        running.stop()
        raise


def _digest(ended: Ended, output: Path) -> str:
    try:
        return hashlib.sha256(output.read_bytes()).hexdigest()
    except OSError:
        return f"no output: {ended.reason}"


def _content(folder: Path) -> str:
    """The input files of the command."""
    return repr(sorted((path.name, path.stat().st_size) for path in folder.iterdir()))
