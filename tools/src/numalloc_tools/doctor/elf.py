"""The facts in an ELF file that decide whose malloc a program gets."""

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection, DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from numalloc_tools.problem import Problem

_PIE = 0x08000000  # DF_1_PIE
_DF_SYMBOLIC = 2
_DYNAMIC_NAMES = ("malloc", "free", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign", "_Znwm", "_ZdlPv")
SANITIZERS = {
    "__asan_init": "AddressSanitizer",
    "__tsan_init": "ThreadSanitizer",
    "__msan_init": "MemorySanitizer",
    "__lsan_init": "LeakSanitizer",
    "__hwasan_init": "HWAddressSanitizer",
    "__memprof_init": "the memory profiler",
}
# Symbols of allocators with functions under other names, and of programs with a pool in front of malloc.
_OTHERS = {
    "je_malloc": "jemalloc",
    "_rjem_malloc": "jemalloc (of Rust)",
    "mi_malloc": "mimalloc",
    "tc_malloc": "tcmalloc",
    "rpmalloc": "rpmalloc",
    "sn_malloc": "snmalloc",
    "scalable_malloc": "tbbmalloc",
    "PyObject_Malloc": "Python",
    "_emalloc": "PHP",
    "JLI_Launch": "Java",
    "ruby_xmalloc": "Ruby",
    "numalloc_profile_dump": "numalloc",  # in programs that are linked with libnumalloc.a, unless they are stripped
}
# Exceptions of the ELF reader for broken files, such as one with a table beyond its end.
BROKEN = (ELFError, OSError, ValueError, LookupError, AssertionError, OverflowError, MemoryError, TypeError, struct.error)
_OWN = "its own malloc"
_SANITIZER_LIBRARY = re.compile(r"lib(?:clang_rt\.)?([a-z]*(?:asan|tsan|lsan|msan))\b")


@dataclass(frozen=True)
class Elf:
    path: Path
    bits: int
    machine: str
    interpreter: str  # "" for a static program or a library
    is_pie: bool
    is_library: bool  # a shared library, not a program
    needed: list[str]
    auditors: list[str]  # libraries that the loader runs
    defined: set[str] = field(default_factory=set)  # functions of the malloc family, for the dynamic linker
    imported: set[str] = field(default_factory=set)
    sanitizers: list[str] = field(default_factory=list)
    brings: list[str] = field(default_factory=list)  # allocators and pools, found by their names
    hides_malloc: bool = False  # has a malloc that the loader does not see
    go: bool = False

    @property
    def static(self) -> bool:
        return not self.interpreter and not self.is_library

    @property
    def musl(self) -> bool:
        return "ld-musl" in self.interpreter

    @property
    def kind(self) -> tuple[int, str]:
        return self.bits, self.machine


def sanitizer_libraries(names: Iterable[str]) -> list[str]:
    return [match[1] for name in names if (match := _SANITIZER_LIBRARY.match(name))]


def is_elf(start: bytes) -> bool:
    return start[:4] == b"\x7fELF"


def read(path: Path) -> Elf:
    try:
        with path.open("rb") as file:
            return _read(path, ELFFile(file))
    except (FileNotFoundError, ProcessLookupError):  # the file of a process that has ended
        raise
    except PermissionError as error:
        raise Problem(f"{path} cannot be read ({error.strerror}); accepted: a readable program") from None
    except BROKEN as error:
        raise Problem(f"{path}: its ELF headers are broken ({error or type(error).__name__}); accepted: an intact program") from None


def keeps_its_malloc(path: str) -> bool:
    """Whether a library is linked with -Bsymbolic: the loader does not resolve its calls of its own functions."""
    try:
        with open(path, "rb") as file:
            dynamic = next((segment for segment in ELFFile(file).iter_segments() if isinstance(segment, DynamicSegment)), None)
            if dynamic is None or not any(_is_symbolic(tag) for tag in dynamic.iter_tags()):
                return False
        return "malloc" in read(Path(path)).defined
    except (Problem, *BROKEN):
        return False


def _is_symbolic(tag) -> bool:
    return tag.entry.d_tag == "DT_SYMBOLIC" or (tag.entry.d_tag == "DT_FLAGS" and bool(tag.entry.d_val & _DF_SYMBOLIC))


def _read(path: Path, elf: ELFFile) -> Elf:
    interpreter, dynamic = "", None
    for segment in elf.iter_segments():
        if segment["p_type"] == "PT_INTERP":
            interpreter = segment.get_interp_name()
        elif isinstance(segment, DynamicSegment):
            dynamic = segment
    needed, auditors, is_pie = [], [], False
    if dynamic is not None:
        for tag in dynamic.iter_tags():
            if tag.entry.d_tag == "DT_NEEDED":
                needed.append(tag.needed)
            elif tag.entry.d_tag in ("DT_AUDIT", "DT_DEPAUDIT"):
                auditors += dynamic._get_stringtable().get_string(tag.entry.d_val).split(":")
            elif tag.entry.d_tag == "DT_FLAGS_1":
                is_pie = bool(tag.entry.d_val & _PIE)
    shared = elf["e_type"] == "ET_DYN"
    defined, imported, sanitizers, brings = _symbols(elf, dynamic)
    hides_malloc = _OWN in brings and "malloc" not in defined
    brings.discard(_OWN)
    sections = {section.name for section in elf.iter_sections()}
    return Elf(
        path,
        elf.elfclass,
        elf["e_machine"],
        interpreter,
        is_pie,
        shared and not interpreter and not is_pie,
        needed,
        auditors,
        defined,
        imported,
        sorted(sanitizers),
        sorted(brings),
        hides_malloc,
        bool(sections & {".go.buildinfo", ".note.go.buildid"}),
    )


def _symbols(elf: ELFFile, dynamic) -> tuple[set[str], set[str], set[str], set[str]]:
    defined: set[str] = set()
    imported: set[str] = set()
    sanitizers: set[str] = set()
    brings: set[str] = set()
    tables = [section for section in elf.iter_sections() if isinstance(section, SymbolTableSection)]
    if not any(table.name == ".dynsym" for table in tables) and dynamic is not None and not isinstance(dynamic, DynamicSection):
        tables.append(dynamic)  # its section headers are stripped
    for table in tables:
        for_linker = getattr(table, "name", ".dynsym") == ".dynsym"
        if not _has_any(elf, table):
            continue
        for symbol in table.iter_symbols():
            name = symbol.name
            there = symbol["st_shndx"] != "SHN_UNDEF"
            if for_linker and name in _DYNAMIC_NAMES:
                (defined if there else imported).add(name)
            elif there and name == "malloc":
                brings.add(_OWN)
            elif name in SANITIZERS:
                sanitizers.add(SANITIZERS[name])
            elif there and name in _OTHERS:
                brings.add(_OTHERS[name])
    return defined, imported, sanitizers, brings


def _has_any(elf: ELFFile, table) -> bool:
    """Searches the names in one piece: a large program has a million symbols, and reading each takes seconds."""
    if not isinstance(table, SymbolTableSection):
        return True
    names = elf.get_section(table["sh_link"]).data()
    return any(name.encode() + b"\0" in names for name in (*_DYNAMIC_NAMES, *SANITIZERS, *_OTHERS))
