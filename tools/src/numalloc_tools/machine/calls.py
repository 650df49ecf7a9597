"""System calls of a process before it becomes the program: memory policy, CPUs, huge pages."""

import ctypes
import errno
import os
import platform
import threading
from dataclasses import dataclass

from numalloc_tools.machine.lists import ranges

_GENERIC = (237, 236)  # of the architectures that share a table, such as aarch64 and riscv64
_MEMPOLICY = {"x86_64": (238, 239), "ppc64le": (261, 260), "s390x": (270, 269)}  # set_, get_: libc has no functions for them
_MODES = {
    "MPOL_DEFAULT": 0,
    "MPOL_PREFERRED": 1,
    "MPOL_BIND": 2,
    "MPOL_INTERLEAVE": 3,
    "MPOL_LOCAL": 4,
    "MPOL_WEIGHTED_INTERLEAVE": 6,
}
_MODE_FLAGS = 0xE000
_SET_THP_DISABLE, _GET_THP_DISABLE = 41, 42
_MASK_BITS = 1024
_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{os.strerror(number)}", what)
    return result


@dataclass(frozen=True)
class MemoryPolicy:
    """The policy of every page without a policy of mbind(). Threads, fork and exec inherit it."""

    mode: str
    nodes: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"set_mempolicy({self.mode}{', nodes ' if self.nodes else ''}{ranges(sorted(self.nodes), steps=False)})"

    def make(self) -> None:
        mask = (ctypes.c_ulong * (_MASK_BITS // (8 * ctypes.sizeof(ctypes.c_ulong))))()
        width = 8 * ctypes.sizeof(ctypes.c_ulong)
        for node in self.nodes:
            mask[node // width] |= 1 << node % width
        number = _MEMPOLICY.get(platform.machine(), _GENERIC)[0]
        # The kernel reads one bit less than the given count.
        pointer, bits = (mask, _MASK_BITS + 1) if self.nodes else (None, 0)
        _checked(_libc.syscall(ctypes.c_long(number), ctypes.c_long(_MODES[self.mode]), pointer, ctypes.c_ulong(bits)), str(self))

    def refusal(self) -> int:
        """The kernel's error, or 0. Tried in a thread that ends at once, since a policy belongs to a thread."""
        found = [errno.EAGAIN]

        def attempt() -> None:
            try:
                self.make()
                found[0] = 0
            except OSError as error:
                found[0] = error.errno or errno.EAGAIN

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
        return found[0]


def inherited_policy() -> str:
    """The mode with which this process began, as numactl sets it; default if the kernel does not tell."""
    mode = ctypes.c_int(0)
    number = _MEMPOLICY.get(platform.machine(), _GENERIC)[1]
    if _libc.syscall(ctypes.c_long(number), ctypes.byref(mode), None, ctypes.c_ulong(0), None, ctypes.c_ulong(0)) < 0:
        return "MPOL_DEFAULT"
    value = mode.value & ~_MODE_FLAGS
    return next((name for name, known in _MODES.items() if known == value), str(value))


@dataclass(frozen=True)
class HugePagesDisabled:
    """Transparent huge pages of the whole process. fork and exec inherit the setting."""

    disabled: bool

    def __str__(self) -> str:
        return f"prctl(PR_SET_THP_DISABLE, {int(self.disabled)})"

    def make(self) -> None:
        arguments = [ctypes.c_ulong(value) for value in (int(self.disabled), 0, 0, 0)]
        _checked(_libc.prctl(ctypes.c_int(_SET_THP_DISABLE), *arguments), str(self))

    @staticmethod
    def now() -> bool:
        return _libc.prctl(ctypes.c_int(_GET_THP_DISABLE), *[ctypes.c_ulong(0)] * 4) == 1


@dataclass(frozen=True)
class Affinity:
    cpus: tuple[int, ...]

    def __str__(self) -> str:
        return f"sched_setaffinity(CPUs {ranges(sorted(self.cpus), steps=False)})"

    def make(self) -> None:
        os.sched_setaffinity(0, self.cpus)


Call = MemoryPolicy | HugePagesDisabled | Affinity
