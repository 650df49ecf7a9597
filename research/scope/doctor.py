"""`research doctor`: what `research scope` needs beside the lab: an emulator that lets itself be watched, and the plugin that
counts."""

import sys
from collections.abc import Iterator

import typer
from numalloc_tools.doctor import report
from numalloc_tools.doctor.finding import NOTE, OK, Finding, worst
from numalloc_tools.guest.architecture import X86_64
from numalloc_tools.machine.terminal import console
from numalloc_tools.problem import Problem

from research.scope import plugin, qemu

_NAME = "scope"
_NO_TERMINAL = 110  # columns where nobody said how many there are
_WHY = "research scope counts what a program does to a machine of many nodes; everything else works without."


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor() -> None:
    """Say whether scope can count here, and what is missing for it; fetch nothing.

    Exits with 1 if something is missing.
    """
    findings = list(check())
    report.show(findings, "research doctor", console(_NO_TERMINAL))
    if worst(findings) != OK:
        sys.exit(1)


def check() -> Iterator[Finding]:
    emulator, missing, mend = qemu.at_hand(), [], []
    if emulator is None:
        least = ".".join(map(str, qemu.LEAST))
        missing.append(f"there is no QEMU {least} or newer")
        mend.append(f"Install {X86_64.qemu_package} {least}; on Debian, research scope fetches the backport by itself")
    try:
        plugin.library()
    except Problem as problem:
        what, _, how = str(problem).partition("; ")
        missing.append(what)
        mend.append(how)
    if missing:
        yield Finding(NOTE, _NAME, f"research scope cannot count yet: {' and '.join(missing)}", _WHY, mend)
    else:
        assert emulator is not None
        yield Finding(OK, _NAME, f"research scope can count: {emulator.version}, {plugin.library()}")
