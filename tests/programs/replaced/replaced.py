"""replaced.py KIND CXX LIBRARY: a program, or a library in it, that replaces some of operator new and delete, or
malloc, is called by every form as it is without our library: same calls in the same order, same results. What
is expected is what the very program does without ours. Kinds of company:

    executable   the program replaces them; ours is preloaded, or linked before or after libstdc++
    library      a library replaces them; ours is preloaded behind it, or before it, where ours serves alone
    plugin       the same library is opened with RTLD_LOCAL by a C program under ours
    archive      LIBRARY is libnumalloc.a, in a dynamic, a static and a static-pie program
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ALIGNED, NOTHROW = "St11align_val_t", "RKSt9nothrow_t"
NEWS = [f"_Z{which}m{tail}" for which in ("nw", "na") for tail in ("", NOTHROW, ALIGNED, ALIGNED + NOTHROW)]
DELETES = [f"_Z{which}Pv{tail}" for which in ("dl", "da") for tail in ("", "m", NOTHROW, ALIGNED, "m" + ALIGNED, ALIGNED + NOTHROW)]
SINGLE = [(name,) for name in NEWS + DELETES]
# What belongs together, and so may put a header before each block.
TOGETHER = [
    ("_Znwm", "_ZdlPv"),
    ("_Znwm", "_ZdlPv", "_ZdlPvm"),
    ("_Znam", "_ZdaPv"),
    ("_Znwm", "_Znam", "_ZdlPv", "_ZdaPv"),
    ("_Znwm" + ALIGNED, "_ZdlPv" + ALIGNED),
    ("_Znam" + ALIGNED, "_ZdaPv" + ALIGNED),
    ("_Znwm", "_ZdlPv", "_Znwm" + ALIGNED, "_ZdlPv" + ALIGNED),
    tuple(NEWS + DELETES),
]
MALLOC = [("malloc",), ("malloc", "_Znwm", "_ZdlPv"), ("malloc", "_ZdaPvm"), ("malloc", "_ZnamRKSt9nothrow_t")]

# A malloc whose only function for alignments is posix_memalign. Before gcc 14 libstdc++ gives such a program blocks that its own
# free does not know, so what is expected is what a malloc with aligned_alloc gets.
ONLY_POSIX = ("malloc", "no_aligned_alloc")

kind, cxx, library = sys.argv[1:4]
faults: list[str] = []
runs = 0


def run(*command, preload="", status=None) -> str:
    environment = {**os.environ, "LD_PRELOAD": str(preload), "LD_LIBRARY_PATH": os.path.dirname(library)}
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment if preload or status is not None else None,
    )
    if status is None and done.returncode != 0:
        sys.exit(f"{command}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout + done.stderr + (f"exit status {done.returncode}\n" if done.returncode else "")


def expect(what, names, wanted: str, got: str) -> None:
    global runs
    runs += 1
    if got == wanted:
        return
    of = "nothing" if not names else "everything" if len(names) > 10 else " ".join(names)
    pairs = list(zip(wanted.splitlines() + [""] * 1000, got.splitlines() + [""]))
    at = next((pair for pair in pairs if pair[0] != pair[1]), ("?", "?"))
    faults.append(f"{what}, {of} replaced:\n    wanted {at[0]}\n    got    {at[1]}")


def compile_to(folder: Path, source: str, output: str, *flags) -> Path:
    run(cxx, "-std=c++20", "-O1", "-fPIC", "-pthread", "-w", *flags, "-c", HERE / source, "-o", folder / output)
    return folder / output


def operators(folder: Path, names) -> Path:
    flags = [f"-DR{name}" if name.startswith("_") else f"-DR_{name}" for name in names] + (["-DHEADER"] if names in TOGETHER else [])
    return compile_to(folder, "operators.cpp", "operators.o", *flags)


def executable(folder: Path) -> None:
    caller = compile_to(folder, "caller.cpp", "caller.o")
    for names in [(), *SINGLE, *TOGETHER, *MALLOC]:
        own = operators(folder, names)
        plain = folder / "plain"
        run(cxx, "-rdynamic", caller, own, "-o", plain)
        wanted = run(plain, status="any")
        expect("preloaded", names, wanted, run(plain, preload=library, status="any"))
        for order in ([library, "-lstdc++"], ["-lstdc++", library]):
            linked = folder / "linked"
            run(cxx, "-rdynamic", caller, own, "-Wl,--no-as-needed", *order, "-o", linked)
            expect(f"linked, {os.path.basename(order[0])} first", names, wanted, run(linked, status="any"))
        if names == ("malloc",):
            run(cxx, "-rdynamic", caller, operators(folder, ONLY_POSIX), "-o", plain)
            expect("preloaded", ONLY_POSIX, wanted, run(plain, preload=library, status="any"))


def shared_library(folder: Path) -> None:
    caller = compile_to(folder, "caller.cpp", "caller.o")
    run(cxx, "-rdynamic", caller, operators(folder, ()), "-o", folder / "plain")
    untouched = run(folder / "plain")
    for names in [*SINGLE, *TOGETHER, *MALLOC]:
        brought = folder / "brought.so"
        run(cxx, "-shared", operators(folder, names), "-o", brought)
        wanted = run(folder / "plain", preload=brought)
        expect("preloaded behind the library", names, wanted, run(folder / "plain", preload=f"{brought}:{library}", status="any"))
        expect("preloaded before the library", names, untouched, run(folder / "plain", preload=f"{library}:{brought}", status="any"))
        run(cxx, "-rdynamic", caller, "-Wl,--no-as-needed", brought, library, f"-Wl,-rpath,{folder}", "-o", folder / "linked")
        expect("linked behind the library", names, wanted, run(folder / "linked", status="any"))


def plugin(folder: Path) -> None:
    (folder / "main.c").write_text("""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
    void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) { fputs(dlerror(), stderr); return 1; }
    return ((int (*)(void))dlsym(plugin, "run_all"))();
}
""")
    run(cxx, "-x", "c", folder / "main.c", "-o", folder / "main", "-ldl")
    caller = compile_to(folder, "caller.cpp", "caller.o", "-DPLUGIN")
    untouched = ""
    for names in [(), *SINGLE, *TOGETHER]:
        run(cxx, "-shared", caller, operators(folder, names), "-o", folder / "plugin.so")
        got = run(folder / "main", folder / "plugin.so", preload=library, status="any")
        if not names:
            untouched = run(folder / "main", folder / "plugin.so")
        expect("opened by a C program", names, untouched, got)


def archive(folder: Path) -> None:
    caller = compile_to(folder, "caller.cpp", "caller.o")
    for names in [(), *SINGLE, *TOGETHER]:
        own = operators(folder, names)
        run(cxx, "-rdynamic", caller, own, "-o", folder / "plain")
        wanted = run(folder / "plain")
        for how in ([], ["-static"], ["-static-pie"]) if names in TOGETHER or not names else ([],):
            run(cxx, *how, caller, own, library, "-pthread", "-o", folder / "linked")
            expect(" ".join(["archive", *how]), names, wanted, run(folder / "linked", status="any"))


with tempfile.TemporaryDirectory() as work:
    {"executable": executable, "library": shared_library, "plugin": plugin, "archive": archive}[kind](Path(work))
print("\n".join(faults) or f"{runs} runs, each as without the library")
sys.exit(1 if faults else 0)
