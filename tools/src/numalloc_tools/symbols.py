"""Names for addresses in files, by llvm-symbolizer or addr2line if installed, otherwise by the file's own symbols."""

import os
import shutil
import subprocess
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import NoteSegment

UNKNOWN = "??"


@dataclass(frozen=True)
class Name:
    """A function, and the position of the address in it."""

    function: str
    file: str = ""
    line: int = 0


# For each address its functions, the innermost inlined one first.
Names = dict[int, list[Name]]
Symbolizer = Callable[[str, list[int]], Names]


class AnotherFile(Exception):
    """The file is not the one that was in the program."""


def names_in(path: str, offsets: list[int], build_id: str = "") -> Names:
    """For offsets from the start of a file. `build_id`: the expected one, if known."""
    if not os.path.isfile(path):  # a read from a pipe would block
        return {}
    try:
        with open(path, "rb") as stream:
            elf = ELFFile(stream)
            if build_id and (own := _build_id(elf)) and own != build_id:
                raise AnotherFile
            segments = [s.header for s in elf.iter_segments() if s.header.p_type == "PT_LOAD"]
            symbols = _symbols(elf)
    except (OSError, ELFError):
        return {}
    addresses = {}
    for offset in offsets:
        for segment in segments:
            if segment.p_offset <= offset < segment.p_offset + segment.p_filesz:
                addresses[offset] = offset - segment.p_offset + segment.p_vaddr
    by_tool = _tool()(path, sorted(set(addresses.values())))
    by_table = demangled({name for name in (_nearest(symbols, address) for address in addresses.values()) if name})
    names = {}
    for offset, address in addresses.items():
        named = _nearest(symbols, address)
        found = [name for name in by_tool.get(address, []) if name.function != UNKNOWN]
        if found:
            names[offset] = found
        elif named:
            names[offset] = [Name(by_table[named])]
    return names


def _build_id(elf: ELFFile) -> str:
    for segment in elf.iter_segments():
        for note in segment.iter_notes() if isinstance(segment, NoteSegment) else ():
            if note["n_type"] == "NT_GNU_BUILD_ID":
                return note["n_desc"]
    return ""


def _symbols(elf: ELFFile) -> list[tuple[int, int, str]]:
    """The functions of the larger of its two tables, by address: address, length, name."""
    functions = set()
    for table in (".symtab", ".dynsym"):
        section = elf.get_section_by_name(table)
        for symbol in section.iter_symbols() if section else ():
            if symbol.entry.st_info.type in ("STT_FUNC", "STT_LOOS") and symbol.entry.st_shndx != "SHN_UNDEF" and symbol.entry.st_value:
                functions.add((symbol.entry.st_value, symbol.entry.st_size, symbol.name))
    return sorted(functions)


def _nearest(symbols: list[tuple[int, int, str]], address: int) -> str | None:
    place = bisect_right(symbols, (address, 1 << 64, "")) - 1
    if place < 0:
        return None
    start, length, name = symbols[place]
    return name if address < start + max(length, 1) else None


def demangled(names: set[str]) -> dict[str, str]:
    """Demangles C++ names, if binutils' c++filt is installed."""
    ordered = sorted(names)
    program = shutil.which("c++filt")
    if not program or not ordered:
        return {name: name for name in ordered}
    result = subprocess.run([program], input="\n".join(ordered), capture_output=True, text=True)
    lines = result.stdout.splitlines()
    return dict(zip(ordered, lines)) if len(lines) == len(ordered) else {name: name for name in ordered}


def _tool() -> Symbolizer:
    if shutil.which("llvm-symbolizer"):
        return _by_llvm
    return _by_binutils if shutil.which("addr2line") else lambda path, addresses: {}


def _by_llvm(path: str, addresses: list[int]) -> Names:
    command = ["llvm-symbolizer", f"--obj={path}", "--output-style=GNU", "--addresses", "--demangle", "--inlines", "--functions"]
    return _asked(command, addresses)


def _by_binutils(path: str, addresses: list[int]) -> Names:
    return _asked(["addr2line", "-e", path, "-a", "-f", "-C", "-i"], addresses)


def _asked(command: list[str], addresses: list[int]) -> Names:
    """Both tools print the same form: the address, then for each function its name and FILE:LINE."""
    result = subprocess.run(command, input="".join(f"{address:#x}\n" for address in addresses), capture_output=True, text=True)
    names: Names = {}
    lines = iter(result.stdout.splitlines())
    current: list[Name] = []
    for line in lines:
        if line.startswith("0x") and ":" not in line:
            current = names.setdefault(int(line, 16), [])
            continue
        place = next(lines, "").split(" (discriminator")[0]
        file, _, number = place.rpartition(":")
        current.append(Name(line, "" if file.startswith(UNKNOWN) else file, int(number) if number.isdigit() else 0))
    return names


def file_name(path: str) -> str:
    return Path(path).name or path
