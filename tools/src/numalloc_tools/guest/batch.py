"""Runs many short programs in one virtual machine: booting takes longer than most of them."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from numalloc_tools.guest import accelerator, console, kernel, vm
from numalloc_tools.guest.image import Image
from numalloc_tools.guest.machine import Machine
from numalloc_tools.guest.pack import add_needs, command_script
from numalloc_tools.problem import Problem


@dataclass(frozen=True)
class Job:
    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    setup: str = ""  # shell lines before it, in its own subshell
    timeout: int = 900  # seconds; on a busy host a job of one second may take minutes


@dataclass
class Result:
    status: int
    stdout: str
    stderr: str
    oom_kills: int


@dataclass
class Report:
    results: dict[str, Result]
    findings: list[str]
    seconds: float


BOOT_SECONDS = 900  # on a busy host; a machine of 255 CPUs takes minutes on an idle one
GRACE_SECONDS = 120  # after a job's own time-out
_BOOTED = "@boot"  # ends before the first job starts
NOT_BOOTED = "the machine did not boot"  # begins the message of NotBooted; tests/gate recognises the failure by it
# The end of a job: its number, name, exit status and count of oom kills, all of them twice. A serial line of a busy host
# loses bytes, so the guest writes the mark several times, and a mark counts only if its two halves agree.
_END = re.compile(r"@@end (\d+ (\S+) (\d+) (\d+)) = \1@@")
_MARKS = 4
_DAMAGED = re.compile(r"@@end \d.*|.*\d \d+@@$")


class NotBooted(Problem):
    """The guest did not start its first job: the jobs are not the cause."""


def run(
    machine: Machine,
    jobs: list[Job],
    files: list[str] | None = None,
    thp: str = "madvise",
    autonuma: bool = False,
    on_end: Callable[[str, Result], None] = lambda name, result: None,
    kernel_image: Path | None = None,
    tcg_threads: str = "auto",
    commands: list[str] | None = None,
    acceleration: accelerator.Accelerator | None = None,
    kernel_arguments: tuple[str, ...] = (),
    boot_seconds: int = BOOT_SECONDS,
) -> Report:
    """Runs the jobs one after the other. `commands` are those that their scripts call; `on_end` is called with each job that
    ends. Stops the machine if a job does not end within its time-out and a grace period."""
    if len({job.name for job in jobs}) != len(jobs):
        raise ValueError("two jobs of one name")
    paths = {word for job in jobs for word in (job.environment.get("LD_LIBRARY_PATH", "")).split(":") if word}
    image = Image(":".join(sorted(paths)), machine.architecture)
    programs: dict[str, str] = {}
    for job in jobs:
        programs[job.command[0]] = image.add_command(job.command[0])
        add_needs(image, job.environment, job.command[1:])
    for path in files or []:
        image.add_file(path)
    for command in commands or []:
        image.add_command(command)
    streams = {"stdout": _Split(), "stderr": _Split()}
    results: dict[str, Result] = {}
    longest = max((job.timeout for job in jobs), default=0)
    deadline = vm.Deadline(boot_seconds + longest)

    def take(stream: str, chunk: bytes) -> None:
        streams[stream].take(chunk)
        out, err = streams["stdout"].parts, streams["stderr"].parts
        for name in (out.keys() & err.keys()) - results.keys() - {_BOOTED}:
            text, status, kills = out[name]
            results[name] = Result(status, text, err[name][0], kills)
            deadline.extend(GRACE_SECONDS + longest)
            on_end(name, results[name])

    kernel_path = kernel_image or kernel.image(architecture=machine.architecture)
    outcome = vm.run(
        machine,
        image,
        vm.Guest(_script(jobs, programs), thp=thp, autonuma=autonuma, kernel_arguments=list(kernel_arguments)),
        kernel_path,
        acceleration or accelerator.choose("auto", tcg_threads, machine.cpus, kernel_path, machine.architecture),
        deadline,
        lambda chunk: take("stdout", chunk),
        lambda chunk: take("stderr", chunk),
    )
    if outcome.reason and _BOOTED not in streams["stdout"].parts:
        raise NotBooted(f"{NOT_BOOTED}: {outcome.reason}\nThe console's end:\n{console.end(outcome.console)}", outcome.status)
    findings = console.findings(outcome.console)
    if outcome.reason:
        findings.append(outcome.reason)
    return Report(results, findings, outcome.seconds)


def _script(jobs: list[Job], programs: dict[str, str]) -> str:
    lines = ["kills() { read -r _ n <<E\n$(grep '^oom_kill ' /proc/vmstat)\nE\n echo $n; }"]
    # ended NUMBER NAME STATUS KILLS
    marks = " ".join(str(one) for one in range(_MARKS))
    lines.append(f'ended() {{ for _ in {marks}; do printf "\\n@@end %s %s %d %d = %s %s %d %d@@\\n" "$@" "$@"; done; }}')
    lines.append(f"ended 0 {_BOOTED} 0 0")
    for number, job in enumerate(jobs, 1):
        program = programs[job.command[0]]
        command = command_script(program, job.command[1:], job.environment, prefix=["timeout", "-s", "KILL", str(job.timeout)])
        lines += [
            "before=$(kills)",
            f"(\n{job.setup}\n{command})",
            "status=$?; killed=$(($(kills) - before))",
            f"ended {number} {shlex.quote(job.name)} $status $killed",
            f"ended {number} {shlex.quote(job.name)} $status $killed >&2",
        ]
    return "\n".join(lines) + "\n"


class _Split:
    """Splits a stream at the marks that end jobs. The first complete mark of a job counts; other marks, and remains of
    damaged ones, belong to no job."""

    def __init__(self) -> None:
        self.parts: dict[str, tuple[str, int, int]] = {}
        self._rest = b""
        self._lines: list[str] = []

    def take(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for raw in lines:
            self._take_line(raw.decode(errors="replace"))

    def _take_line(self, line: str) -> None:
        match = _END.search(line)
        if match is None:
            self._lines.append(line)
            return
        name = match[2]
        # If a line end is lost, the mark follows a job's last line or a damaged mark.
        if before := line[: match.start()]:
            self._lines.append(before)
        if name not in self.parts:
            self.parts[name] = (self._output(), int(match[3]), int(match[4]))
        self._lines = []

    def _output(self) -> str:
        # A damaged mark on a line of its own leaves no empty line.
        lines = [(line, _DAMAGED.sub("", line)) for line in self._lines]
        return "\n".join(left for line, left in lines if left or not line).strip("\n")
