"""Where the functions of allocators begin: what the plugin has to know to watch their calls."""

import os
import re
import subprocess
from functools import cache
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from numalloc_tools.guest import batch

_CODE = 32  # bytes that tell a function from others at the same place of another page
_FUNCTIONS = {
    **dict.fromkeys(("malloc", "valloc", "pvalloc"), "malloc"),
    "calloc": "calloc",
    "realloc": "realloc",
    "reallocarray": "reallocarray",
    **dict.fromkeys(("aligned_alloc", "memalign"), "aligned"),
    "posix_memalign": "posix",
    **dict.fromkeys(("free", "cfree", "free_sized", "free_aligned_sized"), "free"),
}
_OPERATOR = re.compile(r"_Z(?:(?P<malloc>n[wa]m)|(?P<free>d[la]Pv))")  # new and delete, with all that may follow


def write(path: Path, jobs: list[batch.Job]) -> None:
    """Of every allocator that one of the jobs may have: libraries or programs with a malloc of their own."""
    lines = {line for job in jobs for file in _files(job) for line in functions(file)}
    path.write_text("".join(f"{line}\n" for line in sorted(lines)))


def _files(job: batch.Job) -> list[str]:
    program = job.command[0]
    preloaded = job.environment.get("LD_PRELOAD", "").replace(":", " ").split()
    return [program, *preloaded, *_libraries(program, job.environment.get("LD_LIBRARY_PATH", ""))]


@cache
def _libraries(program: str, folders: str) -> list[str]:
    """What it is linked with; nothing of a static one."""
    environment = {**os.environ, "LD_LIBRARY_PATH": folders} if folders else None
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, env=environment)
    return re.findall(r"(?:=> |^\s+)(/\S+) \(0x", listing.stdout, re.MULTILINE)


@cache
def functions(path: str) -> tuple[str, ...]:
    """A line for each: what it does, its place in its page and its first bytes."""
    try:
        with open(path, "rb") as file:
            elf = ELFFile(file)
            found = {
                symbol.name: (symbol["st_value"], what)
                for section in elf.iter_sections()
                if isinstance(section, SymbolTableSection)
                for symbol in section.iter_symbols()
                if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] == "STT_FUNC" and (what := _what(symbol.name))
            }
            if not any(name.partition("@")[0] == "malloc" for name in found):
                return ()  # an operator new that calls it is one call too many
            return tuple(sorted({f"{what} {at & 0xFFF:x} {_code(elf, at).hex()}" for at, what in found.values()}))
    except (OSError, ELFError):
        return ()


def _what(name: str) -> str:
    name = name.partition("@")[0]
    operator = _OPERATOR.match(name)
    return _FUNCTIONS.get(name) or (operator.lastgroup if operator else "") or ""


def _code(elf: ELFFile, address: int) -> bytes:
    elf.stream.seek(next(elf.address_offsets(address)))
    return elf.stream.read(_CODE)
