"""Whether the library is in a running process, and whose malloc the process calls."""

import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path

from numalloc_tools.doctor import elf, maps
from numalloc_tools.doctor.elf import Elf
from numalloc_tools.doctor.finding import BAD, NOTE, OK, WARNING, Case, Finding
from numalloc_tools.doctor.maps import Mapping
from numalloc_tools.machine.words import count, listed

_BITS = 64  # of the library
_SECURE = 23  # AT_SECURE
_LIBRARY = re.compile(r"libnumalloc(-counted|-hardened)?\.so[\d.]*")
_BINDING_ONLY = re.compile(r"libnumalloc-binding\.so[\d.]*")


def library_of(mappings: list[Mapping]) -> str | None:
    return next((file for file in maps.files(mappings) if _LIBRARY.fullmatch(_name(file))), None)


def check(case: Case, process: int, mappings: list[Mapping]) -> Iterator[Finding]:
    library = library_of(mappings)
    program = elf.read(Path(f"/proc/{process}/exe"))
    if library is None:
        yield _absent(case, process, program, maps.files(mappings))
        return
    if library != maps.without_deleted(library):
        yield Finding(
            NOTE,
            "library-replaced",
            f"{maps.without_deleted(library)} was replaced on disk since the process started",
            "The process continues with the old one.",
        )
    yield _present(process, mappings, library, program)


def _name(file: str) -> str:
    return os.path.basename(maps.without_deleted(file))


def _present(process: int, mappings: list[Mapping], library: str, program: Elf) -> Finding:
    sanitizers = program.sanitizers or elf.sanitizer_libraries(_name(file) for file in maps.files(mappings))
    if sanitizers:
        what = f"{library} is mapped, and has stepped aside for {listed(sanitizers)}"
        return Finding(BAD, "sanitizer", what, "A sanitizer's malloc must know every block.", ["Measure a build without -fsanitize"])
    if "malloc" in program.defined or program.hides_malloc:
        if "numalloc" in program.brings and not program.hides_malloc:
            return _linked(os.readlink(f"/proc/{process}/exe"))
        what = f"{library} is mapped, but the program {os.readlink(f'/proc/{process}/exe')} has a malloc of its own"
        return Finding(BAD, "own-malloc", what, "Its own calls go there.", ["Build it without, or link it with numalloc instead"])
    leads = {
        file: {name: target for name, target in targets.items() if not _is_plt_entry(process, name, target, program)}
        for file, targets in maps.leads(process, mappings).items()
        if file != library
    }
    ours = [file for file, targets in leads.items() if library in targets.values()]
    strays = sorted(file for file, targets in leads.items() if set(targets.values()) - {library})
    if ours and not strays:
        return Finding(OK, "library", f"The library serves process {process}: malloc of {count(len(ours), 'file')} leads to {library}")
    if strays:
        targets = sorted({target for file in strays for target in leads[file].values()} - {library})
        why = "These files have a malloc of their own." if ours else "A library that comes before ours in LD_PRELOAD is found first."
        what = f"{library} is mapped, but {count(len(strays), 'file')} ({listed(strays[:3])}) call the malloc of {listed(targets)}"
        return Finding(WARNING if ours else BAD, "own-malloc", what, why, ["numalloc doctor -- PROGRAM tells more"])
    what = f"{library} is mapped; whose malloc the process calls is unknown"
    return Finding(
        NOTE, "library", what, "/proc/PID/mem cannot be read, or the process has called no malloc yet.", ["Run numalloc doctor as root"]
    )


def _is_plt_entry(process: int, name: str, target: str, program: Elf) -> bool:
    """A program at a fixed address that takes the address of free has a PLT entry of that name, which jumps to the real one."""
    return name not in program.defined and target == os.readlink(f"/proc/{process}/exe")


def _linked(path: str) -> Finding:
    return Finding(OK, "library", f"{path} is linked with libnumalloc.a (malloc only: threads are not bound)")


def _absent(case: Case, process: int, program: Elf, mapped: list[str]) -> Finding:
    path = os.readlink(f"/proc/{process}/exe")
    if binding := next((file for file in mapped if _BINDING_ONLY.fullmatch(_name(file))), None):
        what = f"Only {binding} is in it: threads are bound, malloc is another's"
        return Finding(NOTE, "library", what, "This is the effect of --binding-only.")
    if "numalloc" in program.brings and (program.static or not program.hides_malloc):
        return _linked(path)
    why, mend = _why_absent(case, process, program, path)
    return Finding(BAD, "library", f"The library is not in process {process} ({path})", why, [mend])


def _why_absent(case: Case, process: int, program: Elf, path: str) -> tuple[str, str]:
    """Returns the reason and the remedy."""
    preload = case.environment.get("LD_PRELOAD", "")
    named = [word for word in preload.replace(":", " ").split() if "libnumalloc" in word]
    if program.bits != _BITS:
        what = f"The program is of {program.bits} bits, the library of {_BITS}: the loader ignores it."
        return what, f"Take a program of {_BITS} bits, or build the library for this one"
    if program.static:
        return "The program is static: it has no loader to preload a library.", "Link the program with libnumalloc.a"
    if program.musl:
        return "The program is for musl, the library for glibc.", "Take a program that is built for glibc"
    if _secure(process):
        why = "It runs with raised privileges (setuid, setgid or file capabilities): the loader preloads nothing."
        return why, "Link the program with -lnumalloc"
    if not named:
        why = "LD_PRELOAD did not name it when the program started" + (f": it was '{preload}'." if preload else ".")
        mend = "Start it again with LD_PRELOAD=.../libnumalloc.so; a service needs Environment=LD_PRELOAD=... in its unit, and sudo and su"
        return why, mend + " remove the variable"
    if not any(os.path.exists(f"/proc/{process}/root{word}") for word in named if word.startswith("/")):
        why = f"LD_PRELOAD names {named[0]}, which does not exist in the process's file system."
        return why, "Mount or copy the library into its container"
    return f"LD_PRELOAD names {named[0]}, and the loader did not load it.", f"numalloc doctor -- {path}"


def _secure(process: int) -> bool:
    try:
        vector = Path(f"/proc/{process}/auxv").read_bytes()
    except OSError:
        return False
    pairs = struct.iter_unpack("=QQ", vector[: len(vector) // 16 * 16])
    return any(key == _SECURE and value for key, value in pairs)
