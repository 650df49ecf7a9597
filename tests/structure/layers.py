#!/usr/bin/env python3
"""The floors of src/: none includes one above it, and only the lowest makes system calls. And research/, which uses the
product, and which nothing of the product uses.

    layers.py PROJECT/src       exit status 1, and a line for every fault

docs/design.md draws the same picture. A folder that is not in the list is a fault too: a new
floor must say where it stands. Files of different folders have different names, so that a name
alone finds its file; NAME.h and NAME.cpp of one folder belong together.
"""

import re
import sys
from pathlib import Path, PurePosixPath

# Lowest first. A file may include files of its own floor and of those before it. os/ implements
# what base/check.h only declares, which is no include.
FLOORS = [
    "base",
    "os",
    "options",
    "heap/space",
    "heap/pages",
    "heap/central",
    "heap/node",
    "heap/program_heaps",
    "heap/profile",
    "heap/guarded",
    "heap/thread",
    "placement",
    "statistics",
    "api",
]

# heap and placement are neighbours that do not know each other; api joins them.
STRANGERS = {("placement", floor) for floor in FLOORS if floor.startswith("heap/")}

# The os floor is where system calls are made. Names that only a system call has are faults
# elsewhere; open, read and the like are words too, so symbols.py looks for those in the binary.
SYSTEM_CALLS = re.compile(
    r"\b(?:syscall|raw_syscall|mmap|mmap64|munmap|mremap|mprotect|madvise|sbrk|mlock|mbind|get_mempolicy|"
    r"set_mempolicy|move_pages|openat|fopen|ioctl|nanosleep|usleep|sched_yield|prctl|fork|execve)\s*\(|"
    r"\bSYS_\w+|\b__NR_\w+|[<\"](?:sys/syscall|sys/mman|sys/ioctl|linux/\w+|os/syscall)\.h"
)
# The interposed functions have the names of what they stand for.
INTERPOSED = re.compile(r"NUMALLOC_EXPORT|NUMALLOC_NEXT")

LONGEST_FILE = 500

PRODUCT = ("src", "include", "bindings", "bench", "cmake", "examples", "packaging", "scripts", "tests", "tools")
# An import, an include, or the folder's name in a script or a list of CMake's.
USE = re.compile(
    r"^\s*(?:from|import)\s+research\b.*|import_module\(\W*research\b.*|#\s*include\s+[\"<].*\bresearch/.*|\bresearch/\w.*", re.M
)
# What runs or checks all of the tree.
KNOW_OF_RESEARCH = {"tests/gate/flaky.py", "tests/structure/layers.py", "tests/structure/prose.py", "tests/structure/self_test.py"}


def floor_of(path: str) -> str | None:
    return next((floor for floor in FLOORS if path.startswith(floor + "/")), None)


def without_comments(text: str) -> str:
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', lambda m: m[0] if re.search(r"/|\.\w+\"$", m[0]) else '""', text)
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)


def faults_of_file(path: str, text: str) -> list[str]:
    floor = floor_of(path)
    if floor is None:
        return [f"{path}: in no floor; layers.py has the list"]
    faults = []
    for number, line in enumerate(without_comments(text).split("\n"), 1):
        if found := re.match(r'\s*#\s*include\s+"([^"]+)"', line):
            other = floor_of(found[1])
            if other is None:
                if not found[1].startswith("numalloc/"):  # the public headers and tables
                    faults.append(f'{path}:{number}: "{found[1]}" is not written from src/ on')
            elif FLOORS.index(other) > FLOORS.index(floor):
                faults.append(f"{path}:{number}: {floor} includes {found[1]}, a floor above it")
            elif (floor, other) in STRANGERS:
                faults.append(f"{path}:{number}: {floor} includes {found[1]}; the two do not know each other")
        if floor != "os" and not INTERPOSED.search(line) and (found := SYSTEM_CALLS.search(line)):
            faults.append(f"{path}:{number}: {found[0].strip(' (')}: system calls are made in src/os only")
    return faults


def too_long(path: str, text: str) -> list[str]:
    return [f"{path}: more than {LONGEST_FILE} lines"] if text.count("\n") > LONGEST_FILE else []


def lengths_of_tree(project: Path) -> list[str]:
    """Every file that people write, tests and tools too."""
    faults = []
    for folder in ("src", "include", "tests", "bench", "tools/src", "tools/tests", "research", "scripts", "cmake"):
        for p in sorted((project / folder).rglob("*")):
            if p.suffix in {".h", ".hpp", ".c", ".cpp", ".def", ".py", ".sh", ".cmake"} and p.is_file():
                faults += too_long(p.relative_to(project).as_posix(), p.read_text())
    return faults


def shared_names(paths: list[str]) -> list[str]:
    folders: dict[str, set[str]] = {}
    for path in map(PurePosixPath, paths):
        folders.setdefault(path.stem, set()).add(str(path.parent))
    return [
        f"{' and '.join(sorted(homes))} each have a file {name}: name each for the thing in it"
        for name, homes in sorted(folders.items())
        if len(homes) > 1
    ]


def uses_of_research(path: str, text: str) -> list[str]:
    return [f"{path}:{text.count(chr(10), 0, found.start()) + 1}: uses research/: {found[0].strip()}" for found in USE.finditer(text)]


def uses_of_tree(project: Path) -> list[str]:
    faults = []
    for folder in PRODUCT:
        for p in sorted((project / folder).rglob("*")):
            if p.is_file() and (p.name == "CMakeLists.txt" or p.suffix in {".h", ".hpp", ".c", ".cpp", ".def", ".py", ".sh", ".cmake"}):
                path = p.relative_to(project).as_posix()
                faults += uses_of_research(path, p.read_text()) if path not in KNOW_OF_RESEARCH else []
    return faults


def faults_of_tree(source: Path) -> list[str]:
    files = [p for p in sorted(source.rglob("*")) if p.suffix in {".h", ".hpp", ".cpp", ".c", ".def"}]
    if len(files) < 30:
        return [f"{source}: only {len(files)} files; is this src/?"]
    paths = [p.relative_to(source).as_posix() for p in files]
    faults = [fault for path, p in zip(paths, files) for fault in faults_of_file(path, p.read_text())]
    return faults + shared_names(paths)


def main() -> int:
    source = Path(sys.argv[1])
    faults = faults_of_tree(source) + lengths_of_tree(source.parent) + uses_of_tree(source.parent)
    print("\n".join(faults) or "all floors keep their place")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
