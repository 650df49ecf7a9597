#!/usr/bin/env python3
"""The structure tests themselves: each must see the fault it is there for.

self_test.py LIBNUMALLOC_SO
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import fast_path
import fresh
import idioms
import layers
import layout
import mirror
import symbols
import thread_safety
import walks
from check import SOURCE, differences, finish, run

FAULTY_SOURCES = [
    ("heap/central/x.cpp", '#include "heap/thread/thread_heap.h"\n', "a floor above it"),
    ("heap/node/x.cpp", '#include "heap/program_heaps/bound_heap.h"\n', "a floor above it"),
    ("heap/space/x.h", '#include "placement/choose_place.h"\n', "a floor above it"),
    ("os/x.cpp", '#include "options/options.h"\n', "a floor above it"),
    ("placement/x.cpp", '#include "heap/node/process_heap.h"\n', "do not know each other"),
    ("api/x.cpp", "void* p = mmap(0, 1, 2, 3, 4, 5);\n", "src/os only"),
    ("heap/central/x.cpp", "call(SYS_madvise, p);\n", "src/os only"),
    ("placement/x.cpp", "#include <sys/mman.h>\n", "src/os only"),
    ("api/x.cpp", '#include "os/syscall.h"\n', "src/os only"),
    ("newfloor/x.cpp", "\n", "in no floor"),
    ("api/x.cpp", '#include "thread_heap.h"\n', "not written from src/"),
]
RIGHT_SOURCES = [
    ("heap/central/x.cpp", '#include "heap/space/bag.h"\n#include "os/lock.h"\n'),
    ("os/x.cpp", '#include "base/bits.h"\n#include <sys/mman.h>\ncall(SYS_mmap);\n'),
    ("api/x.cpp", '// mmap(2) is not called here\n#include "numalloc/options.def"\n'),
    ("api/x.cpp", "NUMALLOC_EXPORT int execve(const char* path);\n"),
]
# Files of src, and the names that two folders share.
FAULTY_NAMES = [
    (["os/report.h", "os/report.cpp", "statistics/report.h"], "os and statistics each have a file report:"),
    (["heap/pages/steps.h", "os/steps.cpp"], "heap/pages and os each have a file steps:"),
    (["api/symbols.def", "os/symbols.h"], "api and os each have a file symbols:"),
]
RIGHT_NAMES = ["os/counts.h", "os/counts.cpp", "os/counts.def", "os/page_counts.h", "heap/space/counted.h"]

USES_OF_RESEARCH = [
    "import research\n",
    "    from research.scope import model\n",
    'import_module("research.cli")\n',
    '#include "../research/plugin/cache.h"\n',
    "add_subdirectory(${PROJECT_SOURCE_DIR}/research/plugin)\n",
]

FAULTY_IDIOMS = [
    'namespace {\nextern "C" const int end;\n}  // namespace\n',
    "#if defined(NUMALLOC_STATIC)",
    "int n = __atomic_load_n(&word, __ATOMIC_RELAXED);",
    "__sync_fetch_and_add(&word, 1);",
    "std::atomic_ref<int>{word}.store(1, std::memory_order_relaxed);",
    "int n = shared.load();",
    "shared.store(of(1, 2));",
    "shared.fetch_add(f(x, y));",
    "if (shared.exchange(true)) return;",
    "__thread int mine;",
    "static thread_local int mine = 0;",
    "call(SYS_munmap, p, bytes);",
    "call(SYS_madvise, p,\n     bytes, MADV_DONTNEED);",
    "call(SYS_mmap, p, bytes, 0, MAP_PRIVATE | MAP_FIXED, -1, 0);",
]
RIGHT_IDIOMS = [
    'extern "C" const int end;\nnamespace {\nint n;\n}  // namespace\nextern "C" {\n}\n',
    "int n = shared.load(std::memory_order_relaxed);",
    "shared.store(of(1,\n    2), std::memory_order_release);",
    "store_relaxed(word, 1);  // as __atomic_store_n",
    "rules.load(path, places, complain);",
    "while (!freed.exchange(bag, {newest(), 0, 1})) {}",
    "extern NUMALLOC_THREAD_LOCAL int mine;",
    "std::atomic_thread_fence(std::memory_order_seq_cst);",
    "call(SYS_mmap, p, bytes, 0, MAP_PRIVATE | MAP_FIXED_NOREPLACE, -1, 0);",
    "call(SYS_madvise, p, bytes, MADV_DONTDUMP);",
]

# A page's walk, and sources for it.
WALKED = {
    "heap/run.cpp": "namespace {\n\n// take() is not here.\nvoid begin(int n) { return finish(n); }\n\n}  // namespace\n"
    "void Heap::give(Run* run) {\n    begin(1);\n    if (n) return;\n    else begin(2);\n    const int n = count(3);\n}\n",
    "heap/run.h": "class Heap {\n    [[nodiscard]] static constexpr const Run* find(\n        int n);\n    void give(Run* run) EXCLUDES(lock_);\n};\n",
}
FAULTY_WALKS = [
    ("1. `give()` in `heap/runs.cpp`: merges.", "no file src/heap/runs.cpp"),
    ("1. `give()` in `src/heap/run.cpp`: merges.", "no file src/src/heap/run.cpp"),
    ("1. `give_back()` in `heap/run.cpp`: merges.", "has no function give_back()"),
    ("1. `take()` in `heap/run.cpp`: only a comment has it.", "has no function take()"),
    ("1. `finish()` in `heap/run.cpp`: is only called.", "has no function finish()"),
    ("1. `count()` in `heap/run.cpp`: is only called.", "has no function count()"),
    ("1. `Heap::begin()` in `heap/run.h`: is in the other file.", "has no function Heap::begin()"),
    ("1. `Pages::give()` in `heap/run.cpp`: is another class's.", "has no function Pages::give()"),
    ("1. `give()` in `heap/run.h`: merges, then calls\n   `gives()` in\n   `heap/run.h`.", "has no function gives()"),
    ("The rest is in `gives()` in `heap/run.h`.", "has no function gives()"),
    ("1. Merges the run.", "does not begin with"),
    ("1. `give()` in `heap/run.h` merges.", "does not begin with"),
    ("1. `give()` in `heap/run.h`: merges.\n3. `find()` in `heap/run.h`: finds.", "step 3 follows step 1"),
]
RIGHT_WALK = """### A free
1. `Heap::give()` in `heap/run.cpp`: merges the run, and calls
   `begin()` in `heap/run.cpp`.
2. `find()` in `heap/run.h`: one of
   - these.
### Another
1. `give()` in
   `heap/run.h`: 1. and 2. are no steps here.
"""

# Unit tests, and the sources that they mirror.
MIRRORED = ["os/lock.h", "heap/central/ring.h", "heap/central/sort.cpp", "api/malloc/process.cpp", "os/process.h", "heap/heap.h"]
FAULTY_MIRRORS = [
    ("heap/process/page_test.cpp", "no folder of src has the path heap/process"),
    ("central/page_test.cpp", "no folder of src has the path central"),
    ("page_test.cpp", "no folder of src has the path ."),
    ("lock_test.cpp", "src has lock in os"),
    ("heap/central/lock_test.cpp", "src has lock in os"),
    ("heap/ring_test.cpp", "src has ring in heap/central"),
    ("heap/process_test.cpp", "src has process in api/malloc and in os"),
]
RIGHT_MIRRORS = [
    "os/lock_test.cpp",
    "heap/central/ring_test.cpp",
    "heap/central/many_rings_test.cpp",
    "os/process_test.cpp",
    "heap/all_test.cpp",
]

# What clang is to see of locks, each in a function of this.
LOCKED = """
#include "os/lock.h"
using namespace numalloc;
struct Counter {
    os::Lock<os::LockRank::pages> lock_;
    int count_ NUMALLOC_GUARDED_BY(lock_) = 0;
    void add() NUMALLOC_REQUIRES(lock_) { ++count_; }
    void add_one() NUMALLOC_EXCLUDES(lock_) { os::Guard guard(lock_); add(); }
    void f() { %s }
};
"""
LOCK_FAULTS = [
    ("++count_;", "requires holding lock 'lock_'"),
    ("add();", "requires holding lock 'lock_'"),
    ("os::Guard guard(lock_); add_one();", "while lock 'lock_' is held"),
    ("lock_.lock(); add();", "still held at the end"),
    ("if (lock_.try_lock()) add();", "not held on every path"),
    ("lock_.unlock();", "that was not held"),
    ("const auto more = [&] { ++count_; }; os::Guard guard(lock_); more();", "requires holding lock 'lock_'"),
]
RIGHTLY_LOCKED = [
    "add_one();",
    "os::Guard guard(lock_); add();",
    "if (!lock_.try_lock()) return; add(); lock_.unlock();",
    "const auto more = [&] { lock_.assert_held(); ++count_; }; os::Guard guard(lock_); more();",
]

# A library with every fault that symbols.py looks for.
FAULTY_LIBRARY = """
#include <string>
#include <sys/mman.h>
std::string before_main(getenv("HOME"));
std::string& guarded() { static std::string s(getenv("HOME")); return s; }
extern "C" void* malloc_extra() { return reinterpret_cast<void*>(long{mprotect(nullptr, 4096, 0)}); }
"""

# Straight paths with known costs, in assembly.
PATHS = """
    .text
    .globl f
    .type f, @function
f:  mov value@gottpoff(%rip), %rax
    mov %fs:(%rax), %rdx
    cmp $5, %rdi
    ja 1f
    mov 8(%rdx,%rdi,8), %rax
    lea 16(%rdx), %rcx
    addl $1, (%rdx)
    cmpq $0, (%rcx)
    mov %rax, (%rdx)
    ret
1:  movups %xmm0, (%rdx)
    jmp abort@PLT
    .size f, .-f
    .section .tbss,"awT",@nobits
value: .zero 8
    .section .note.GNU-stack,"",@progbits
"""


def build(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    library = folder / (name + ".so")
    run("c++", "-O1", "-shared", "-fPIC", "-w", "-include", "cstdlib", folder / name, "-o", library) if name.endswith(".cpp") else run(
        "cc", "-shared", folder / name, "-o", library
    )
    return str(library)


def layer_faults() -> list[str]:
    faults = []
    for path, text, expected in FAULTY_SOURCES:
        got = layers.faults_of_file(path, text)
        if len(got) != 1 or expected not in got[0]:
            faults.append(f"layers.py: {path} {text.strip()!r} gave {got}")
    if layers.too_long("x.cpp", "\n" * 500) or not layers.too_long("x.cpp", "\n" * 501):
        faults.append("layers.py: the longest file is not 500 lines")
    faults += [f"layers.py: {text.strip()!r} gave nothing" for text in USES_OF_RESEARCH if not layers.uses_of_research("tools/x.py", text)]
    if got := layers.uses_of_research("tools/x.py", "# research of others\nresearched = 1\n"):
        faults.append(f"layers.py: no use of research/, but: {got}")
    for path, text in RIGHT_SOURCES:
        if got := layers.faults_of_file(path, text):
            faults.append(f"layers.py: {path} is right, but: {got}")
    for paths, expected in FAULTY_NAMES:
        got = layers.shared_names(paths)
        if len(got) != 1 or expected not in got[0]:
            faults.append(f"layers.py: {paths} gave {got}")
    if got := layers.shared_names(RIGHT_NAMES):
        faults.append(f"layers.py: the names are right, but: {got}")
    return faults


def idiom_faults() -> list[str]:
    faults = [f"idioms.py: {code!r} gave nothing" for code in FAULTY_IDIOMS if not idioms.faults_of_file("os/x.cpp", code)]
    for code in RIGHT_IDIOMS:
        if got := idioms.faults_of_file("os/x.cpp", code):
            faults.append(f"idioms.py: {code!r} is right, but: {got}")
    return faults


def walk_faults() -> list[str]:
    faults = []
    for page, expected in FAULTY_WALKS:
        got = walks.faults_of_page(page, WALKED)
        if len(got) != 1 or expected not in got[0]:
            faults.append(f"walks.py: {page!r} gave {got}")
    if got := walks.faults_of_page(RIGHT_WALK, WALKED):
        faults.append(f"walks.py: the walk is right, but: {got}")
    return faults


def mirror_faults() -> list[str]:
    faults = []
    for test, expected in FAULTY_MIRRORS:
        got = mirror.faults_of_tests([test], MIRRORED)
        if len(got) != 1 or expected not in got[0]:
            faults.append(f"mirror.py: {test} gave {got}")
    if got := mirror.faults_of_tests(RIGHT_MIRRORS, MIRRORED):
        faults.append(f"mirror.py: the tests are in the right folders, but: {got}")
    return faults


def lock_faults() -> list[str]:
    faults = []
    for code, expected in LOCK_FAULTS:
        got = thread_safety.errors_of_text(LOCKED % code)
        if not any(expected in error for error in got):
            faults.append(f"thread_safety.py: {code!r} gave {got}")
    for code in RIGHTLY_LOCKED:
        if got := thread_safety.errors_of_text(LOCKED % code):
            faults.append(f"thread_safety.py: {code!r} is right, but: {got}")
    # Every file of ours that takes a lock, as if it took none.
    for path in sorted((SOURCE / "src").rglob("*.cpp")):
        text, guards = re.subn(r"^ *os::Guard \w+\(.*\n", "\n", path.read_text(), flags=re.M)
        if guards and not any("-Wthread-safety" in error for error in thread_safety.errors_of_text(text)):
            faults.append(f"thread_safety.py: {path.name} without its {guards} guards is not seen")
    unsaid = {"os/x.h": "    os::Lock<os::LockRank::pages> lock_;\n    int a NUMALLOC_GUARDED_BY(other.block_);\n"}
    if not thread_safety.without_annotation(unsaid):
        faults.append("thread_safety.py: a lock that guards nothing is not seen")
    return faults


def symbol_faults(folder: Path) -> list[str]:
    library = build(folder, "faulty.cpp", FAULTY_LIBRARY)
    faults = []
    for what, got, expected in [
        ("imports", symbols.import_faults(library), ["elsewhere than glibc", "mprotect"]),
        ("libraries", symbols.library_faults(library), ["loads libstdc++", "needs libstdc++"]),
        ("start", symbols.start_faults(library), [".init_array has 2 entries", "_GLOBAL__sub_I", "_ZGV"]),
        ("exports", differences("exports", symbols.exports_of(library), ["malloc"]), ["missing: malloc", "new: malloc_extra"]),
    ]:
        faults += [f"symbols.py: {what}: {word} not seen in {got}" for word in expected if word not in "\n".join(got)]
    return faults


def layout_faults() -> list[str]:
    names = [*layout.EVERY_PROGRAM, "numalloc_heap_create@@NUMALLOC_0.1"]
    right = [f"{1000 + i:016x} T {name}" for i, name in enumerate(names)]
    wrong = [f"{1000 - i:016x} T {name}" for i, name in enumerate(names)]
    faults = [f"layout.py: right, and seen as wrong: {fault}" for fault in layout.faults_of("\n".join(right))]
    for what, lines in (("the interface in front", wrong), ("no interface", right[:-1])):
        if not layout.faults_of("\n".join(lines)):
            faults.append(f"layout.py: {what}: not seen")
    return faults


def path_faults(folder: Path, library: str) -> list[str]:
    got = fast_path.Code(build(folder, "paths.s", PATHS)).straight_paths("f")
    right = [fast_path.Cost(instructions=10, loads=3, got=1, stores=1, rmw=1, branches=1)]
    faults = [] if got == right else [f"fast_path.py counts {got}, not {right}"]
    # A limit that is one too low, by the program itself, on the real library.
    source = Path(fast_path.__file__).read_text()
    strict = folder / "strict.py"
    strict.write_text(source.replace("FREE = Limit(loads=7", "FREE = Limit(loads=6"))
    done = subprocess.run(
        [sys.executable, strict, library],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(fast_path.__file__).parent), "PATH": "/usr/bin:/bin"},
    )
    if done.returncode == 0 or "free: 7 loads, at most 6" not in done.stdout:
        optimised = "only" not in done.stdout  # a debug build has other paths altogether
        faults += [f"fast_path.py: no fault for a limit of 6 loads:\n{done.stdout}{done.stderr}"] if optimised else []
    return faults


def fresh_faults(folder: Path) -> list[str]:
    """A document of the newest sources, then of older ones, of a commit that is nowhere, and of none."""
    (folder / "src").mkdir()
    (folder / "docs/results").mkdir(parents=True)
    document, source = folder / "docs/results.md", folder / "src/heap.cpp"

    def git(*words: str) -> str:
        return run("git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e", *words).strip()

    def commit(text: str) -> str:
        source.write_text(text)
        git("add", "src")
        git("commit", "-qm", text)
        return git("rev-parse", "--short=7", "HEAD")

    git("init", "-q")
    first, second = commit("one"), commit("two")
    faults = []
    for text, wanted in (
        (f"of numalloc's\nsources of {second}.", "fresh"),
        (f"of numalloc's sources of {second}-dirty.", "fresh"),
        (f"of numalloc's sources of {first}.", "stale"),
        (f"of numalloc's sources of {first}. The sources have\nchanged since.", "fresh"),
        ("of numalloc's sources of 0123abc.", "unknown"),
        ("of numalloc's sources of an unknown commit.", "stale"),
        ("of numalloc's sources of an unknown commit; the sources have changed since.", "fresh"),
        ("of last week.", "stale"),
    ):
        document.write_text(text)
        got, line = fresh.verdict(folder, document)
        if got != wanted or (wanted == "unknown") != ("nothing says whether" in line):
            faults.append(f"fresh.py: {got}, not {wanted}, for '{text}': {line}")
    document.write_text(f"numalloc's sources of {second}")
    source.write_text("not committed yet")
    return faults + ([] if fresh.verdict(folder, document)[0] == "stale" else ["fresh.py: does not see what is not committed"])


def python_faults(folder: Path) -> list[str]:
    """Where one of ruff and mypy is missing, python.py has not looked at all."""
    programs = folder / ".venv/bin"
    programs.mkdir(parents=True)
    faults = []
    for name, wanted in (("mypy", 77), ("ruff", 0)):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
        (folder / "tools").mkdir(exist_ok=True)
        done = subprocess.run([sys.executable, Path(__file__).with_name("python.py"), folder], capture_output=True, text=True)
        if done.returncode != wanted:
            faults.append(f"python.py: {done.returncode}, not {wanted}, with {name} there as well: {done.stdout}{done.stderr}")
    return faults


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="numalloc-structure-") as name:
        folder = Path(name)
        faults = layer_faults() + idiom_faults() + walk_faults() + mirror_faults() + lock_faults() + layout_faults()
        (folder / "clone").mkdir()
        faults += symbol_faults(folder)
        faults += fresh_faults(folder / "clone") + python_faults(folder / "project")
        if fast_path.run("uname", "-m").strip() == "x86_64":
            faults += path_faults(folder, sys.argv[1])
    finish(faults, "every fault is seen")


if __name__ == "__main__":
    main()
