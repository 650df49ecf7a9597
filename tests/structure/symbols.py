#!/usr/bin/env python3
"""A library's face: what it exports, what it asks of others, and that it starts without code.

    symbols.py LIBRARY GOLDEN TABLE...

Exported: exactly what the tables in src/api name, which is exactly golden/GOLDEN (so that a name that
comes or goes is seen by two people). Imported: from glibc only, and no system call by its libc
name, which keeps them on the os floor. Loaded: libc, the dynamic linker, and the kernel's vdso.
"""

import re
import sys
from pathlib import Path

from check import SOURCE, differences, finish, golden_lines, run

# libc functions that are system calls: only src/os makes any, and by its own instruction.
# Not mmap, munmap, mremap, madvise: os/libc_call.h.
SYSTEM_CALLS = set(
    "syscall mmap64 mprotect posix_madvise mincore mlock munlock mlockall brk sbrk "
    "open open64 openat openat64 read write pread pread64 pwrite readv writev close ioctl fcntl fcntl64 lseek "
    "stat fstat access readlink getpid gettid getppid kill tgkill raise prctl arch_prctl getrlimit setrlimit prlimit "
    "sched_yield sched_getaffinity sched_setaffinity nanosleep usleep sleep futex fork vfork execve".split()
)

# What every link adds for tools that are not there, and what older glibcs do not have.
WEAK = {
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
    "__gmon_start__",
    "__rseq_offset",
    "__rseq_size",
    # The environment before libc has started.
    "__libc_stack_end",
    # The heap profile's stacks: libgcc_s, in a process that has it.
    "_Unwind_Backtrace",
    "_Unwind_Find_FDE",
    "_Unwind_GetCFA",
    "_Unwind_GetIPInfo",
    # The C++ run-time library, in a process that has it.
    "_ZSt15get_new_handlerv",
    "_ZSt17__throw_bad_allocv",
    "_ZNSt3__117__throw_bad_allocEv",
    # Sanitizers: the library steps aside where there is one.
    "__asan_init",
    "__hwasan_init",
    "__lsan_init",
    "__memprof_init",
    "__msan_init",
    "__tsan_init",
}

LIBRARIES = re.compile(r"(linux-vdso\.so\.1|libc\.so\.6|ld-linux-x86-64\.so\.2|ld-linux-aarch64\.so\.1)$")

# What operators new and delete go through by name, as libstdc++'s do.
LEANED_ON = (
    "malloc free aligned_alloc posix_memalign _Znwm _Znam _ZnwmSt11align_val_t _ZnamSt11align_val_t "
    "_ZdlPv _ZdaPv _ZdlPvSt11align_val_t _ZdaPvSt11align_val_t"
).split()

# Local functions that a C++ compiler adds for code before main, and for statics in functions.
CODE_BEFORE_MAIN = re.compile(r"_GLOBAL__sub_I|__static_initialization_and_destruction|__cxa_guard|_ZGV")


def table_of(source: Path, names: list[str]) -> list[str]:
    texts = [(source / "src/api" / name).read_text() for name in names]
    return [symbol for text in texts for symbol in re.findall(r"^NUMALLOC_SYMBOL\((\w+)(?:, NUMALLOC_[\d.]+)?\)", text, re.M)]


def exports_of(library: str) -> list[str]:
    symbols = [line.split() for line in run("nm", "-D", "--defined-only", library).splitlines()]
    return sorted(re.sub("@.*", "", words[-1]) for words in symbols if words[-2] != "A")


def version_faults(library: str, source: Path, names: list[str]) -> list[str]:
    """Names of the interface have the version of the table; the malloc family has none, as programs linked with libc ask."""
    wanted = {}
    for name in names:
        wanted |= dict(re.findall(r"^NUMALLOC_SYMBOL\((\w+)(?:, (NUMALLOC_[\d.]+))?\)", (source / "src/api" / name).read_text(), re.M))
    found = {}
    for line in run("nm", "-D", "--defined-only", library).splitlines():
        symbol, _, version = line.split()[-1].partition("@@")
        found[symbol] = version
    return [
        f"{symbol} has version '{found[symbol]}', not '{version}'"
        for symbol, version in sorted(wanted.items())
        if symbol in found and found[symbol] != version
    ]


def import_faults(library: str) -> list[str]:
    faults = []
    yields = "between_steps" in run("nm", library)  # src/os/between_steps.cpp, in builds with assertions
    for line in run("nm", "-D", "-u", library).splitlines():
        kind, symbol = line.split()
        name, _, version = symbol.partition("@")
        if not version:
            if kind not in "wv" or name not in WEAK:
                faults.append(f"import without a version of libc's: {name}")
        elif not version.strip("@").startswith("GLIBC_"):
            faults.append(f"import from elsewhere than glibc: {symbol}")
        if name in SYSTEM_CALLS and not (yields and name == "sched_yield"):
            faults.append(f"system call by libc's function: {name}; src/os has its own way")
    return faults


def library_faults(library: str) -> list[str]:
    loaded = [line.split()[0] for line in run("ldd", library).splitlines()]
    faults = [f"loads {name}" for name in loaded if not LIBRARIES.search(name)]
    needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-dW", library))
    return faults + [f"needs {name}" for name in needed if not LIBRARIES.search(name)]


def start_faults(library: str) -> list[str]:
    """.init_array holds one entry, the compiler's frame_dummy, and no function runs before main."""
    symbols = run("nm", library)
    faults = [f"code before main or a guarded static: {line}" for line in symbols.splitlines() if CODE_BEFORE_MAIN.search(line)]
    section = re.search(r"\s\.init_array\s+INIT_ARRAY\s+(\w+)\s+\w+\s+(\w+)", run("readelf", "-SW", library))
    if section is None:
        return faults
    if int(section[2], 16) != 8:
        faults.append(f".init_array has {int(section[2], 16) // 8} entries, not one")
    entry = [line for line in symbols.splitlines() if line.startswith(section[1])]
    if not any("frame_dummy" in line for line in entry):
        faults.append(f".init_array begins with something else than frame_dummy: {entry}")
    return faults


def bound_here_faults(library: str) -> list[str]:
    """A program may replace what the operators go through, so the dynamic linker has to say who has it."""
    if "_Znwm" not in exports_of(library):
        return []
    bound = re.findall(r"(?:JUMP_SLOT?|GLOB_DAT?)\s+\w+\s+(\w+)", run("readelf", "-rW", library))
    return [f"bound to the library's own already by the linker: {name}" for name in LEANED_ON if name not in bound]


def main() -> None:
    library, golden, *tables = sys.argv[1:]
    table = sorted(table_of(SOURCE, tables))
    faults = differences(f"{tables} against golden/{golden}", table, golden_lines(golden))
    faults += differences(f"exported, against {tables}", exports_of(library), table)
    if len(set(table)) != len(table):
        faults.append(f"{tables} name something twice")
    faults += version_faults(library, SOURCE, tables)
    faults += bound_here_faults(library) + import_faults(library) + library_faults(library) + start_faults(library)
    finish(faults, f"{len(table)} symbols; nothing but libc; no code before main")


if __name__ == "__main__":
    main()
