"""What a program's file says: where its main is, and which function an address of its text belongs to."""

import re
import struct
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

# Where Linux puts a program that may lie anywhere, when addresses are not randomised: two thirds of all of them.
_LOAD_BASE = 0x555555554AAA
_PAGE = 4096
KERNEL = "[kernel]"
UNKNOWN = "[unknown]"  # no file or memory of the process
_LEA_RDI = b"\x48\x8d\x3d"  # lea main(%rip), %rdi
_MOV_RDI = b"\x48\xc7\xc7"  # mov $main, %rdi


def main_address(path: str) -> int:
    """In memory, without randomisation; 0 where it cannot be told."""
    try:
        with open(path, "rb") as file:
            elf = ELFFile(file)
            if not any(segment["p_type"] == "PT_INTERP" for segment in elf.iter_segments()) and elf["e_type"] == "ET_DYN":
                return 0  # static but anywhere: the kernel puts it where libraries go
            at = _main_symbol(elf) or _main_of_start(elf)
            return at + _load_bias(elf) if at else 0
    except (OSError, ELFError):
        return 0


def _load_bias(elf: ELFFile) -> int:
    if elf["e_type"] != "ET_DYN":
        return 0
    loads = [segment.header for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"]
    alignment = max(load["p_align"] for load in loads)
    return (_LOAD_BASE & -max(alignment, _PAGE)) - (loads[0]["p_vaddr"] & -_PAGE)


def _main_symbol(elf: ELFFile) -> int:
    for section in elf.iter_sections():
        if isinstance(section, SymbolTableSection):
            for symbol in section.get_symbol_by_name("main") or []:
                if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF":
                    return symbol["st_value"]
    return 0


def _main_of_start(elf: ELFFile) -> int:
    """A stripped program still begins with the code that hands main to the C library."""
    entry = elf["e_entry"]
    offset = next(elf.address_offsets(entry), None)
    if offset is None:
        return 0
    elf.stream.seek(offset)
    code = elf.stream.read(64)
    if (at := code.find(_LEA_RDI)) >= 0:
        return entry + at + 7 + struct.unpack_from("<i", code, at + 3)[0]
    if (at := code.find(_MOV_RDI)) >= 0:
        return struct.unpack_from("<i", code, at + 3)[0]
    return 0


@dataclass(frozen=True)
class _Text:
    """Of one file: its functions in order, and its segments to get from offsets to its own addresses."""

    segments: list[tuple[int, int, int]]  # offset, bytes, address
    starts: list[int]
    functions: list[tuple[int, int, str]]  # start, end, name

    def address(self, offset: int) -> int:
        for start, size, address in self.segments:
            if start <= offset < start + size:
                return offset - start + address
        return offset

    def function(self, address: int) -> str | None:
        index = bisect_right(self.starts, address) - 1
        if index >= 0 and address < self.functions[index][1]:
            return self.functions[index][2]
        return None


@cache
def _text(path: str) -> _Text | None:
    try:
        with open(path, "rb") as file:
            elf = ELFFile(file)
            segments = [(s["p_offset"], s["p_filesz"], s["p_vaddr"]) for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
            found: dict[int, tuple[int, int, str]] = {}
            for section in elf.iter_sections():
                if isinstance(section, SymbolTableSection):
                    for symbol in section.iter_symbols():
                        if symbol["st_info"]["type"] in ("STT_FUNC", "STT_LOOS") and symbol["st_shndx"] != "SHN_UNDEF":
                            start = symbol["st_value"]
                            end = start + max(symbol["st_size"], 1)
                            # Of several names the shortest: malloc, not __libc_malloc.
                            if start not in found or len(symbol.name) < len(found[start][2]):
                                found[start] = (start, end, symbol.name)
    except (OSError, ELFError):
        return None
    functions = sorted(found.values())
    return _Text(segments, [start for start, _, _ in functions], functions)


@cache
def has_malloc(path: str) -> bool:
    """A library that brings a malloc of its own, whatever its name: an allocator."""
    try:
        with open(path, "rb") as file:
            exported = ELFFile(file).get_section_by_name(".dynsym")
            found = exported.get_symbol_by_name("malloc") if isinstance(exported, SymbolTableSection) else None
            return any(symbol["st_shndx"] != "SHN_UNDEF" for symbol in found or [])
    except (OSError, ELFError):
        return False


@dataclass(frozen=True)
class Place:
    object: str  # the file's name, [vdso] and the like, or [kernel]
    path: str
    symbol: str
    address: int  # in the file


class Maps:
    """A process's /proc/PID/maps."""

    _LINE = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ \d+ *(.*)$")

    def __init__(self, text: str):
        self._ranges = sorted(
            (int(match[1], 16), int(match[2], 16), int(match[3], 16), match[4])
            for match in map(self._LINE.match, text.splitlines())
            if match
        )
        self._starts = [start for start, _, _, _ in self._ranges]

    def _range(self, address: int) -> tuple[int, int, int, str] | None:
        index = bisect_right(self._starts, address) - 1
        return self._ranges[index] if index >= 0 and address < self._ranges[index][1] else None

    def file(self, address: int) -> tuple[str, int] | None:
        """The file that is there, and the place in it."""
        found = self._range(address)
        return (found[3], address - found[0] + found[2]) if found and found[3].startswith("/") else None

    def place(self, address: int) -> Place:
        if address >> 63:
            return Place(KERNEL, "", "-", address)  # its functions have no names here
        found = self._range(address)
        if found is None:
            return Place(UNKNOWN, "", f"{address:#x}", address)
        start, _, offset, path = found
        text = _text(path) if path.startswith("/") else None
        if text is None:
            return Place(path or "[anonymous]", path, f"{address - start:#x}", address - start)
        within = text.address(address - start + offset)
        return Place(Path(path).name, path, text.function(within) or f"{within:#x}", within)


# Of the C library's malloc.c; what lies between them and is not exported belongs to it as well.
_MALLOC_C = {
    "malloc",
    "free",
    "calloc",
    "realloc",
    "memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "posix_memalign",
    "mallinfo",
    "mallinfo2",
    "mallopt",
    "malloc_trim",
    "malloc_usable_size",
    "malloc_stats",
    "malloc_info",
}


@cache
def malloc_of_c_library(path: str) -> tuple[int, int]:
    """The part of its text that malloc.c became: one file of objects, whose own functions have no names in a stripped
    library. It begins after the last function of the file before."""
    text = _text(path)
    if text is None or not (own := [one for one in text.functions if one[2] in _MALLOC_C]):
        return (0, 0)
    first = min(start for start, _, _ in own)
    before = max((end for _, end, _ in text.functions if end <= first), default=first)
    return (before, max(end for _, end, _ in own))
