"""`numalloc doctor`: what hurts here, why, and how to mend it."""

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Optional

import typer

from numalloc_tools.checks import require_least
from numalloc_tools.doctor import (
    invocation,
    lab_checks,
    limit_checks,
    memory_checks,
    node_checks,
    option_checks,
    program,
    report,
    running,
)
from numalloc_tools.doctor.finding import BAD, Case, Finding, worst
from numalloc_tools.machine import facts, process
from numalloc_tools.machine.files import Files, rooted
from numalloc_tools.machine.terminal import console
from numalloc_tools.preload import our_library
from numalloc_tools.problem import Problem

_CHECKS = (option_checks, node_checks, memory_checks, limit_checks)
NO_TERMINAL = 110  # columns where nobody said how many there are


def register(app: typer.Typer) -> None:
    app.command("doctor", context_settings={"allow_interspersed_args": False})(doctor)


def doctor(
    target: Annotated[
        Optional[list[str]],
        typer.Argument(
            help="A program, after --, or the number of a process; else the machine alone.",
            metavar="PROGRAM [ARGS]... | PID",
        ),
    ] = None,
    threads: Annotated[
        Optional[int],
        typer.Option(help="How many threads the program will have; else what OMP_NUM_THREADS says.", show_default=False),
    ] = None,
    library: Annotated[Optional[Path], typer.Option(help="The libnumalloc.so that would be preloaded; else build/release's.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    root: Annotated[
        Optional[Path], typer.Option(help="Judge a copy of another machine's /sys and /proc in this folder.", metavar="FOLDER")
    ] = None,
) -> None:
    """Say what on this machine, in this container or in a program hurts, why, and how to mend it.

    Nothing of the program runs. Exits with 1 if a finding is bad, and with 2 if something is misspelt.
    """
    files = rooted(root)
    require_least(threads, "--threads")
    if target and root:
        raise Problem("--root: another machine's files tell nothing of a program here; accepted: --root alone")
    number = None
    if target and re.fullmatch("[0-9]+", target[0]):
        number = int(target[0])
        as_json = as_json or "--json" in target[1:]
        if others := [word for word in target[1:] if word != "--json"]:
            raise Problem(f"{others[0]}: stands behind the number of a process; accepted there: --json")
    if number is not None:
        findings, subject, about = _of_process(number, files, threads)
    else:
        machine = facts.read(files)
        environment = dict(os.environ) if files.real else {}
        case = Case(machine, machine.process, environment, threads or limit_checks.threads_of(environment))
        findings, subject, about = (
            [*_of_machine(case), *(lab_checks.check() if files.real and not target else [])],
            f"numalloc doctor: {machine.name or 'this machine'}",
            {"machine": machine.name},
        )
        if target:
            found = invocation.resolve(target[0])
            findings = [*program.check(case, found, our_library(library)), *findings]
            subject, about = f"numalloc doctor: {found.program} on {machine.name}", about | {"program": str(found.program)}
    if as_json:
        print(json.dumps(report.as_json(findings, about), indent=1))
    else:
        report.show(findings, subject, console(NO_TERMINAL))
    if worst(findings) == BAD:
        sys.exit(1)


def _of_machine(case: Case) -> list[Finding]:
    return [finding for checks in _CHECKS for finding in checks.check(case)]


def _of_process(number: int, files: Files, threads: int | None) -> tuple[list[Finding], str, dict]:
    running.require(number)
    try:
        return _of_living(number, files, threads)
    except (FileNotFoundError, ProcessLookupError):
        running.require(number)
        raise Problem(f"{number} has ended while it was looked at; accepted: a process that runs") from None


def _of_living(number: int, files: Files, threads: int | None) -> tuple[list[Finding], str, dict]:
    machine = facts.read(files)
    own = process.read(files, str(number))
    # Its limits are asked of the kernel; what its filter forbids can be tried by itself alone.
    known = (
        machine
        if own.seccomp == machine.process.seccomp
        else replace(machine, permissions=[replace(one, answer="not asked", error="", by="") for one in machine.permissions])
    )
    case = Case(known, own, running.environment(number), threads or running.runnable(number, files) or None)
    findings = [*running.check(case, number, files), *_of_machine(case)]
    return (
        findings,
        f"numalloc doctor: process {number}, {own.name}, on {machine.name}",
        {"machine": machine.name, "process": number, "name": own.name},
    )
