"""Tests which system calls about memory nodes and CPUs are allowed here. Each call is made in a child process, because a
filter may kill the caller, and changes nothing outside the child."""

import ctypes
import errno
import mmap
import os
import platform
import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from numalloc_tools.machine.files import Files
from numalloc_tools.machine.process import Process

CAPABILITY = "CAP_SYS_NICE"
ALLOWED, REFUSED, KILLED, NOT_ASKED = "allowed", "refused", "killed", "not asked"
BIND, AFFINITY, ASK_POLICY, SET_POLICY, ASK_PAGES, HOME, WEIGHTED = (
    "mbind",
    "sched_setaffinity",
    "get_mempolicy",
    "set_mempolicy",
    "move_pages",
    "set_mempolicy_home_node",
    "weighted interleave",
)

_NUMBERS = {  # the C library has no functions for them
    "x86_64": {
        "mbind": 237,
        "set_mempolicy": 238,
        "get_mempolicy": 239,
        "move_pages": 279,
        "set_mempolicy_home_node": 450,
        "sched_setaffinity": 203,
        "sched_getaffinity": 204,
    },
    "aarch64": {
        "mbind": 235,
        "get_mempolicy": 236,
        "set_mempolicy": 237,
        "move_pages": 239,
        "set_mempolicy_home_node": 450,
        "sched_setaffinity": 122,
        "sched_getaffinity": 123,
    },
}
_PREFERRED, _MPOL_BIND, _WEIGHTED_INTERLEAVE = 1, 2, 6
_MASK_WORDS = 16
_MASK_BITS = 64 * _MASK_WORDS + 1  # the kernel reads one bit less than the given count


@dataclass(frozen=True)
class Permission:
    call: str
    answer: str
    error: str  # ENOSYS, EPERM, or the signal that ended the caller
    by: str  # the probable cause of the refusal; "" if allowed


def tried(files: Files, process: Process) -> list[Permission]:
    """Tries nothing for another machine's files."""
    numbers = _NUMBERS.get(platform.machine())
    if not files.real or numbers is None:
        return [Permission(name, NOT_ASKED, "", "") for name in _ATTEMPTS]
    node = process.mems[0] if process.mems else 0
    answers = {name: _in_a_child(partial(attempt, numbers, node)) for name, attempt in _ATTEMPTS.items()}
    return [_judged(name, code, process, files) for name, code in answers.items()]


def of(permissions: list[Permission], call: str) -> Permission:
    return next(permission for permission in permissions if permission.call == call)


def _judged(name: str, code: int, process: Process, files: Files) -> Permission:
    if code == 0:
        return Permission(name, ALLOWED, "", "")
    if code < 0:
        return Permission(name, KILLED, signal.Signals(-code).name, "a seccomp filter")
    error = errno.errorcode.get(code, str(code))
    if code == errno.EINVAL or (code == errno.ENOSYS and name == HOME and not process.seccomp):
        by = "a kernel that is too old for it"
    elif code == errno.ENOSYS and not files.path("/proc/self/numa_maps").exists():
        by = "a kernel that was built without memory nodes"
    elif process.seccomp:
        # Docker's own profile forbids move_pages to everyone.
        lifted = name != ASK_PAGES and not process.may_nice
        by = "a seccomp filter" + (f", which such profiles allow with {CAPABILITY}" if lifted else "")
    else:
        by = "the kernel or a security module"
    return Permission(name, REFUSED, error, by)


def _in_a_child(attempt: Callable[[], int]) -> int:
    """0, an error number, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            code = min(attempt(), 254)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _call(number: int, *arguments) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    words = [argument if isinstance(argument, ctypes.Array) else ctypes.c_long(argument) for argument in arguments]
    return ctypes.get_errno() if libc.syscall(ctypes.c_long(number), *words) < 0 else 0


def _mask(node: int):
    words = (ctypes.c_ulong * _MASK_WORDS)()
    words[node // 64] = 1 << node % 64
    return words


def _page() -> tuple[int, int, mmap.mmap]:
    """The address and length of a page, and the object that owns it. The page is written to, so that it is resident."""
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    memory[0] = 1
    return ctypes.addressof(ctypes.c_char.from_buffer(memory)), mmap.PAGESIZE, memory


def _bind(numbers: dict[str, int], node: int, mode: int = _PREFERRED) -> int:
    at, length, memory = _page()
    return _call(numbers["mbind"], at, length, mode, _mask(node), _MASK_BITS, 0)


def _home(numbers: dict[str, int], node: int) -> int:
    at, length, memory = _page()
    if error := _call(numbers["mbind"], at, length, _MPOL_BIND, _mask(node), _MASK_BITS, 0):
        return error
    return _call(numbers["set_mempolicy_home_node"], at, length, node, 0)


def _ask_policy(numbers: dict[str, int], node: int) -> int:
    return _call(numbers["get_mempolicy"], (ctypes.c_int * 1)(), (ctypes.c_ulong * _MASK_WORDS)(), _MASK_BITS, 0, 0)


def _set_policy(numbers: dict[str, int], node: int) -> int:
    return _call(numbers["set_mempolicy"], 0, 0, 0)


def _ask_pages(numbers: dict[str, int], node: int) -> int:
    at, _, memory = _page()
    return _call(numbers["move_pages"], 0, 1, (ctypes.c_void_p * 1)(at), 0, (ctypes.c_int * 1)(), 0)


def _affinity(numbers: dict[str, int], node: int) -> int:
    """Sets the current mask again."""
    mask = (ctypes.c_ulong * 128)()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    got = libc.syscall(ctypes.c_long(numbers["sched_getaffinity"]), ctypes.c_long(0), ctypes.c_long(ctypes.sizeof(mask)), mask)
    if got < 0:
        return ctypes.get_errno()
    return _call(numbers["sched_setaffinity"], 0, got, mask)


_ATTEMPTS: dict[str, Callable[[dict[str, int], int], int]] = {
    BIND: _bind,
    AFFINITY: _affinity,
    ASK_POLICY: _ask_policy,
    SET_POLICY: _set_policy,
    ASK_PAGES: _ask_pages,
    HOME: _home,
    WEIGHTED: lambda numbers, node: _bind(numbers, node, _WEIGHTED_INTERLEAVE),
}
