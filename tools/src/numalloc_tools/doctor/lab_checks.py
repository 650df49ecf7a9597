"""The needs of `numalloc lab scope` beyond the lab's: an emulator with a plugin interface, and the plugin that counts."""

from collections.abc import Iterator

from numalloc_tools.doctor.finding import NOTE, OK, Finding
from numalloc_tools.guest import plugin, qemu
from numalloc_tools.guest.architecture import X86_64
from numalloc_tools.problem import Problem

_NAME = "lab-scope"
_WHY = "numalloc lab scope counts a program's memory traffic on a machine of many nodes; all other commands work without it."


def check() -> Iterator[Finding]:
    emulator, missing, mend = qemu.at_hand(), [], []
    if emulator is None:
        least = ".".join(map(str, qemu.LEAST))
        missing.append(f"there is no QEMU {least} or newer")
        mend.append(f"Install {X86_64.qemu_package} {least}; on Debian, numalloc lab scope fetches the backport by itself")
    try:
        plugin.library()
    except Problem as problem:
        what, _, how = str(problem).partition("; ")
        missing.append(what)
        mend.append(how)
    if missing:
        yield Finding(NOTE, _NAME, f"numalloc lab scope cannot count yet: {' and '.join(missing)}", _WHY, mend)
    else:
        assert emulator is not None
        yield Finding(OK, _NAME, f"numalloc lab scope can count: {emulator.version}, {plugin.library()}")
