"""`numalloc doctor`: finds problems, their reasons and remedies."""

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
NO_TERMINAL = 110  # columns without a terminal


def register(app: typer.Typer) -> None:
    app.command("doctor", context_settings={"allow_interspersed_args": False})(doctor)


def doctor(
    target: Annotated[
        Optional[list[str]],
        typer.Argument(
            help="A program, after --, or the number of a process. Default: the machine alone.",
            metavar="PROGRAM [ARGS]... | PID",
        ),
    ] = None,
    threads: Annotated[
        Optional[int],
        typer.Option(help="The number of threads that the program will have. Default: the value of OMP_NUM_THREADS.", show_default=False),
    ] = None,
    library: Annotated[
        Optional[Path], typer.Option(help="The libnumalloc.so that would be preloaded. Default: the one built here or above, or installed.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    root: Annotated[
        Optional[Path], typer.Option(help="Check another machine, from a copy of its /sys and /proc in this folder.", metavar="FOLDER")
    ] = None,
) -> None:
    """Find problems of this machine, this container or a program, with their reasons and remedies.

    Nothing of the program runs. The exit status is 1 if a finding is bad, and 2 if something is misspelt.
    """
    files = rooted(root)
    require_least(threads, "--threads")
    if target and root:
        raise Problem("--root: another machine's files do not describe a program here; accepted: --root alone")
    number = None
    if target and re.fullmatch("[0-9]+", target[0]):
        number = int(target[0])
        as_json = as_json or "--json" in target[1:]
        if others := [word for word in target[1:] if word != "--json"]:
            raise Problem(f"{others[0]}: follows the number of a process; accepted there: --json")
    if number is not None:
        findings, subject, about = _of_process(number, files, threads)
    else:
        machine = facts.read(files)
        environment = dict(os.environ) if files.real else {}
        case = Case(machine, machine.process, environment, threads or limit_checks.threads_of(environment))
        findings, subject, about = (
            _of_machine(case),
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
        raise Problem(f"{number} ended while it was inspected; accepted: a running process") from None


def _of_living(number: int, files: Files, threads: int | None) -> tuple[list[Finding], str, dict]:
    machine = facts.read(files)
    own = process.read(files, str(number))
    # The kernel tells the limits of another process; the effect of its filter only that process itself can test.
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
