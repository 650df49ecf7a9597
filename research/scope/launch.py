"""Boots the lab's machine with numascope in the emulator and runs programs there."""

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from numalloc_tools.guest import batch, clock, kernel, programs
from numalloc_tools.guest.accelerator import Accelerator
from numalloc_tools.guest.architecture import X86_64
from numalloc_tools.guest.image import find_program
from numalloc_tools.guest.machine import Machine
from numalloc_tools.problem import Problem

from research.scope import calls, code, elf, plugin, qemu
from research.scope.plugin import Settings

# Programs and the kernel's map of memory lie where the plugin expects them; one set of page tables a process.
_KERNEL_ARGUMENTS = ("norandmaps", "nokaslr", "no5lvl", "nopti")
# What is done by the clock would else be done hundreds of times too often for each instruction; more, and booting,
# which waits by the clock as well, takes minutes.
_SLOWER = 20
# They run the program that their arguments name.
_WRAPPERS = {"numactl", "taskset", "setarch", "env", "nice", "ionice", "chrt", "stdbuf", "prlimit", "timeout"}
_INTERPRETERS_DEEP = 4  # as in the kernel
MARKERS = (f"-I{Path(__file__).parents[2] / 'bench/support'}",)  # scope_markers.h, which the benchmark programs have too


@dataclass
class Counted:
    """A program that ran, and what was counted; None where it did not get to its end."""

    result: batch.Result
    counts: dict | None


def counts_of(
    machine: Machine,
    command: list[str],
    settings: Settings | None = None,
    environment: dict[str, str] | None = None,
    **switches,
) -> dict:
    """Of one program: the counts, with its `status`, `stdout` and `stderr`. `switches`: those of `run`."""
    job = batch.Job("program", command, environment or {}, timeout=switches.pop("timeout", 900))
    report = run(machine, [job], settings, **switches)
    counted = report.get("program")
    if counted is None or counted.counts is None:
        reason = "the machine stopped"
        if counted:
            reason = f"it ended with status {counted.result.status}: {counted.result.stderr.strip()[-500:]}"
        raise Problem(f"{command[0]} was not counted; {reason}", 125)
    result = counted.result
    return {**counted.counts, "status": result.status, "stdout": result.stdout, "stderr": result.stderr}


def run(
    machine: Machine,
    jobs: list[batch.Job],
    settings: Settings | None = None,
    on_end: Callable[[str, Counted], None] = lambda name, counted: None,
    **switches,
) -> dict[str, Counted]:
    """Programs one after the other in one machine, each with empty caches. `switches`: those of batch.run."""
    settings = settings or Settings()
    if machine.architecture is not X86_64 or machine.architecture.foreign:
        raise Problem("numascope counts in machines of x86_64 on x86_64; accepted: --arch x86_64", 125)
    if settings.window not in plugin.WINDOWS:
        raise Problem(f"--window: '{settings.window}' is unknown; accepted: {', '.join(plugin.WINDOWS)}")
    emulator = qemu.found()
    with tempfile.TemporaryDirectory(prefix="numalloc-scope-") as work:
        out, entries = Path(work, "counts"), Path(work, "calls")
        if settings.objects:
            calls.write(entries, [replace(job, command=split(job.command)[1]) for job in jobs])
        acceleration = Accelerator(
            ("-accel", "tcg,thread=multi", *emulator.arguments, "-plugin", plugin.argument(machine, settings, out, entries)),
            X86_64.translated_cpu,
            emulator.program,
            emulator.environment,
        )
        started = [_started(number, job) for number, job in enumerate(jobs)]
        counted: dict[str, Counted] = {}

        def ended(name: str, result: batch.Result) -> None:
            number = next(index for index, job in enumerate(jobs) if job.name == name)
            raw = _raw(out, number)
            preloaded = jobs[number].environment.get("LD_PRELOAD", "").replace(":", " ").split()
            counted[name] = Counted(result, code.name(raw, preloaded) if raw else None)
            on_end(name, counted[name])

        report = batch.run(
            machine,
            started,
            kernel_image=switches.pop("kernel_image", None) or kernel.image(),
            on_end=ended,
            acceleration=acceleration,
            kernel_arguments=(*_KERNEL_ARGUMENTS, *_slower(_SLOWER)),
            **switches,
        )
    for name, result in report.results.items():
        counted.setdefault(name, Counted(result, None))
    return counted


def _slower(times: int) -> tuple[str, ...]:
    """Words that make all clocks of the guest go `times` times slower: it is told that its counter counts that
    much faster. Behind those that the lab's machine has by itself; nothing may tell it better."""
    khz = clock.tsc_khz()
    return () if khz is None else (f"tsc_early_khz={khz * times}", "tsc=reliable", "pmtmr=0")


def _raw(out: Path, number: int) -> dict | None:
    """The run's line of JSON; a run that was killed together with its launcher has none. The next run's may just be
    written, or have been cut short."""
    for line in reversed(out.read_text(errors="replace").splitlines() if out.exists() else []):
        with suppress(ValueError):
            raw = json.loads(line)
            if raw["run"] == number:
                return raw
    return None


def _started(number: int, job: batch.Job) -> batch.Job:
    """The same job, its program started by the launcher, which stands behind numactl and the like."""
    around, program = split(job.command)
    launcher = str(programs.built("scope_start", Path(__file__).parent, flags=("-static", *MARKERS)))
    return replace(job, command=[*around, launcher, f"{elf.main_address(program[0]):x}", str(number), *program])


def split(command: list[str]) -> tuple[list[str], list[str]]:
    """What stands around the program, and the program by its path with its arguments."""
    around: list[str] = []
    rest = list(command)
    while rest and os.path.basename(rest[0]) in _WRAPPERS:
        at = next((index for index, word in enumerate(rest[1:], 1) if _is_program(word)), None)
        if at is None:
            break
        around += [find_program(rest[0]), *rest[1:at]]
        rest = rest[at:]
    if not rest:
        raise Problem("no program is named")
    return around, _interpreted([find_program(rest[0]), *rest[1:]])


def _is_program(word: str) -> bool:
    if word.startswith("-") or word.isdigit():
        return False
    try:
        find_program(word)
    except Problem:
        return False
    return True


def _interpreted(command: list[str]) -> list[str]:
    """A script's interpreter is the program that is counted."""
    for _ in range(_INTERPRETERS_DEEP):
        with open(command[0], "rb") as file:
            start = file.read(256)
        if not start.startswith(b"#!"):
            break
        words = start[2:].split(b"\n")[0].decode(errors="replace").split(None, 1)
        if os.path.basename(words[0]) == "env" and len(words) > 1:
            program, *rest = words[1].removeprefix("-S ").split()
            words = [find_program(program), *rest]
        command = [*words, *command]
    return command
