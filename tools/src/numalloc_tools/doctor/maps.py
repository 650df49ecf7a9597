"""The mappings of a process, and the malloc that its files call, read from the tables that the loader wrote."""

import os
import struct
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

from numalloc_tools.doctor.elf import BROKEN

_CALLS = ("malloc", "free")
_MOST_FILES = 200
_DELETED = " (deleted)"


@dataclass(frozen=True)
class Mapping:
    start: int
    end: int
    offset: int
    path: str  # "" for memory without a file


def read(process: int) -> list[Mapping]:
    found = []
    for line in Path(f"/proc/{process}/maps").read_text(errors="replace").splitlines():
        words = line.split(maxsplit=5)
        start, _, end = words[0].partition("-")
        path = words[5] if len(words) > 5 and words[5].startswith("/") else ""
        found.append(Mapping(int(start, 16), int(end, 16), int(words[2], 16), path))
    return found


def files(mappings: list[Mapping]) -> list[str]:
    return list(dict.fromkeys(mapping.path for mapping in mappings if mapping.path))


def without_deleted(path: str) -> str:
    return path.removesuffix(_DELETED)


def leads(process: int, mappings: list[Mapping]) -> dict[str, dict[str, str]]:
    """By file, by name: the file to which its calls of malloc and free go. Empty if the process may not be read; without
    calls that the loader has not bound yet."""
    found: dict[str, dict[str, str]] = {}
    try:
        memory = os.open(f"/proc/{process}/mem", os.O_RDONLY)
    except OSError:
        return found
    try:
        for file in files(mappings)[:_MOST_FILES]:
            start = min((mapping.start for mapping in mappings if mapping.path == file and mapping.offset == 0), default=None)
            for name, address in _slots(process, file) if start is not None else []:
                target = _holder(mappings, _word(memory, address(start)))
                if target and target != file:
                    found.setdefault(file, {})[name] = target
    finally:
        os.close(memory)
    return found


def _word(memory: int, address: int) -> int:
    try:
        return struct.unpack("=Q", os.pread(memory, 8, address))[0]
    except (OSError, struct.error):
        return 0


def _holder(mappings: list[Mapping], address: int) -> str:
    return next((mapping.path for mapping in mappings if mapping.start <= address < mapping.end), "")


def _slots(process: int, file: str):
    """The places in the mapped file that hold the addresses of malloc and free."""
    path = Path(f"/proc/{process}/root{without_deleted(file)}")  # the process may have another root folder
    try:
        with path.open("rb") as stream:
            if stream.read(4) != b"\x7fELF":
                return []
            return _of_elf(ELFFile(stream))
    except BROKEN:
        return []


def _of_elf(elf: ELFFile):
    symbols = elf.get_section_by_name(".dynsym")
    if symbols is None or elf.elfclass != 64:
        return []
    names = symbols.stringtable.data()
    if not any(name.encode() + b"\0" in names for name in _CALLS):
        return []
    wanted = {place: symbol.name for place, symbol in enumerate(symbols.iter_symbols()) if symbol.name in _CALLS}
    first = min(segment["p_vaddr"] for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD")
    found = []
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection) or not section.is_RELA():
            continue
        for offset, info, _ in struct.iter_unpack("=QQq", section.data()):
            if name := wanted.get(info >> 32):
                found.append((name, lambda start, offset=offset: start - (first & ~0xFFF) + offset))
    return found
