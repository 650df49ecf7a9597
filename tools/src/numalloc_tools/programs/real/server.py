"""A server under the allocator, with its load from processes without it: starts it, awaits it, loads, samples and stops it."""

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.allocators.allocator import plain_environment
from numalloc_tools.launch.launcher import Ended, Running
from numalloc_tools.machine import memory
from numalloc_tools.programs import Work

_PATIENCE = 20.0  # seconds until it answers
_SETTLE = 2.0  # seconds after it has freed its data


class LoadFailed(Exception):
    """The reason, in one line."""


def served(
    command: list[str],
    allocator: Allocator,
    work: Work,
    folder: Path,
    ready: Callable[[], bool],
    load: Callable[[], tuple[int, float]],
    empty: Callable[[], object] | None,
    stop: Callable[[Running], None],
    expected: tuple[int, ...] = (0,),
    environment: dict[str, str] | None = None,
) -> Ended:
    """`load` returns the number of operations and their seconds. Waits for the server's end."""
    running = Running(command, allocator, work.limit, folder, work.sample, environment)
    trouble, figures = "", {}
    try:
        deadline = time.monotonic() + min(_PATIENCE, work.limit)
        while not ready():
            if not running.alive() or time.monotonic() > deadline:
                trouble = "it did not answer"
                break
            time.sleep(0.02)
        if not trouble:
            try:
                operations, seconds = load()
                figures = {"operations": operations, "seconds": seconds, "ops_per_second": operations / seconds}
                if empty:
                    empty()
                    time.sleep(_SETTLE)
                    figures["settled_bytes"] = memory.status(running.pid, "VmRSS")
            except (LoadFailed, OSError) as reason:
                trouble = str(reason)
        lives = running.alive()
        if not trouble and lives:
            stop(running)
        else:
            running.ask_to_end()
        ended = running.end(expected)
    except BaseException:
        running.stop()
        raise
    if trouble and (lives or ended.status == "ok"):  # otherwise its own end is the reason
        ended.status, ended.reason = "failed", trouble
    ended.figures |= figures
    return ended


def answer(command: list[str], seconds: float = 60) -> str:
    """The output of a client, which uses the system's malloc."""
    try:
        done = subprocess.run(command, env=plain_environment(), capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise LoadFailed(f"{Path(command[0]).name} did not end within {seconds:.0f} s") from None
    if done.returncode:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise LoadFailed(f"{Path(command[0]).name} ended with status {done.returncode}: {lines[-1] if lines else ''}")
    return done.stdout


def temporary_folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="numalloc-bench-", ignore_cleanup_errors=True)
