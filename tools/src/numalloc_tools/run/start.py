"""Shows the program to start, becomes it, or starts it and waits for it."""

import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from rich.console import Console

from numalloc_tools import processes
from numalloc_tools.launch import program, supervise
from numalloc_tools.launch.prepare import Launch
from numalloc_tools.problem import Problem
from numalloc_tools.run import instances, report

_WIDTH = 120  # of a report that goes to a file


def become(path: str, command: list[str], launch: Launch) -> None:
    """Does not return."""
    environment = launch.applied_to(_own_environment())
    try:
        launch.enter()
    except OSError as error:
        raise Problem(f"{error.filename or 'the program'} cannot be started: {error.strerror}") from None
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
        signal.signal(number, signal.SIG_DFL)
    program.become(path, command, environment)


def without_obstacles(path: str, launch: Launch) -> Launch:
    """Reports in one line that the library cannot be preloaded. The other settings still apply."""
    preload = launch.environment.get("LD_PRELOAD")
    if not preload:
        return launch
    found = program.obstacle(path, Path(preload.rpartition(":")[2]))
    if found is None:
        return launch
    print(f"numalloc: {found.reason}: it runs without {Path(preload.rpartition(':')[2]).name}", file=sys.stderr)
    return launch.with_environment({"LD_PRELOAD": os.environ.get("LD_PRELOAD")}) if found.drop else launch


def _own_environment() -> dict[str, str]:
    """The environment that this command was given. Python adds LC_CTYPE if the locale is C."""
    environment = dict(os.environ)
    try:
        first = Path("/proc/self/environ").read_bytes()
    except OSError:
        return environment
    if not any(entry.startswith(b"LC_CTYPE=") for entry in first.split(b"\0")):
        environment.pop("LC_CTYPE", None)
    return environment


def line(command: list[str], launch: Launch) -> str:
    """A line for a shell."""
    changes = launch.environment.items()
    words = [word for name, value in changes if value is None for word in ("-u", name)]
    words += [f"{name}={value}" for name, value in changes if value is not None]
    return shlex.join([*(["env", *words] if words else []), *command]) or "the environment is unchanged"


def show(command: list[str], jobs: list[tuple[str, Launch]], json_file: str | None) -> None:
    if json_file:
        told = [
            {"label": label, "environment": one.environment, "calls": [str(call) for call in one.calls], "command": command}
            for label, one in jobs
        ]
        _write_json(json_file, told)
        return
    for label, one in jobs:
        if label:
            print(f"# {label}")
        for call in one.calls:
            print(f"# before the start: {call}")
        print(line(command, one))


def _write_json(file: str, content: list[dict]) -> None:
    text = json.dumps(content, indent=2) + "\n"
    try:
        if file == "-":
            print(text, end="", flush=True)
        else:
            Path(file).write_text(text)
    except OSError as error:
        raise _not_written(file, error) from None


def _require_writable(file: str) -> None:
    """Called before the program runs: otherwise its report would be lost."""
    try:
        if file != "-":
            open(file, "a").close()
    except OSError as error:
        raise _not_written(file, error) from None


def _not_written(file: str, error: OSError) -> Problem:
    return Problem(f"--json: {file} cannot be written ({error.strerror}); accepted: a writable file, or - for standard output")


def _tell(told: list[dict], name: str, json_file: str | None) -> None:
    """A problem here does not change the exit status: the program has run, and its status counts."""
    with suppress(OSError):
        console = Console(stderr=True, highlight=False)
        if not console.is_terminal:
            console.width = _WIDTH
        for one in told:
            report.show(console, one, name)
    if json_file:
        try:
            _write_json(json_file, told)
        except Problem as problem:
            print(f"numalloc: {problem}", file=sys.stderr)


def run_and_stay(
    path: str,
    command: list[str],
    jobs: list[tuple[str, Launch]],
    logs: Path | None,
    several: bool,
    reported: bool,
    json_file: str | None,
) -> int:
    """The exit status."""
    environment = _own_environment()
    if json_file:
        _require_writable(json_file)
    starts = []
    folder = instances.folder_for_logs(logs) if logs else None
    if folder:  # before any instance runs
        for number in range(len(jobs)):
            for file in instances.log_files(folder, number).values():
                file.close()
    for number, (_, one) in enumerate(jobs):
        stdin = subprocess.DEVNULL if several else None
        # Opened one by one: thousands of instances have more files than a process may have open.
        files = partial(instances.log_files, folder, number) if folder else None
        starts.append(supervise.Start(path, command, one.applied_to(environment), one, stdin, logs=files))
    family = supervise.Family(starts)
    watches = [report.Watch(pid, label) for pid, (label, _) in zip(family.pids, jobs, strict=True)]
    try:
        statuses = family.run((lambda: max(watch.look() for watch in watches)) if reported else None)
        told = [watch.told(status) for watch, status in zip(watches, statuses, strict=True)]
        if reported:
            _tell(told, os.path.basename(path), json_file)
    finally:
        family.close()
    if not several:
        return supervise.end_as(statuses[0])
    for (label, _), status in zip(jobs, statuses, strict=True):
        if os.WIFSIGNALED(status):
            print(f"numalloc: {label} was ended by {processes.signal_name(os.WTERMSIG(status))}", file=sys.stderr)
        elif os.WEXITSTATUS(status):
            print(f"numalloc: {label} ended with status {os.WEXITSTATUS(status)}", file=sys.stderr)
    return supervise.worst(statuses)
