"""Whether a program would get the library, and if not, why."""

import os
from collections.abc import Iterator
from pathlib import Path

from numalloc_tools.doctor import elf, loader, secure
from numalloc_tools.doctor.elf import Elf
from numalloc_tools.doctor.finding import BAD, NOTE, OK, WARNING, Case, Finding
from numalloc_tools.doctor.invocation import Invocation
from numalloc_tools.machine.words import count, listed
from numalloc_tools.problem import Problem

_POOLS = {  # pools in front of malloc, and how to disable them
    "Python": ("small objects come from Python's own pools, which Python maps itself", ["PYTHONMALLOC=malloc PROGRAM"]),
    "PHP": ("requests are served from PHP's own pools", ["USE_ZEND_ALLOC=0 PROGRAM"]),
    "Java": (
        "Java has its own heap for objects: the library serves its compiler, its threads and native code",
        ["java -XX:+UseNUMA places Java's heap"],
    ),
}
_POOL_LIBRARIES = {"libpython": "Python", "libphp": "PHP", "libjli": "Java"}


def check(case: Case, invocation: Invocation, library: Path) -> Iterator[Finding]:
    path = invocation.program
    if invocation.scripts:
        names = " and ".join(str(script) for script in invocation.scripts)
        are = "is a script" if len(invocation.scripts) == 1 else "are scripts"
        yield Finding(OK, "script", f"{names} {are}: the findings below are about {path}, not about programs that it starts")
    if invocation.strips:
        yield Finding(
            WARNING,
            "preload-stripped",
            f"The script changes LD_PRELOAD: '{invocation.strips}'",
            "Programs that it starts after that line may run without the library.",
            ["Set LD_PRELOAD after that line, for the intended program"],
        )
    program = elf.read(path)
    if program.is_library:
        raise Problem(f"{path} is a shared library or a loader; accepted: a program")
    verdict = _out_of_reach(case, program, elf.read(library))
    if verdict is not None:
        yield verdict
        return
    if (found := secure.reason(path, case.process.no_new_privileges)) and not found[1]:
        yield Finding(
            NOTE,
            "secure-execution",
            f"{path} is {found[0]}: it gets the library only if you start it",
            "For other users the loader preloads nothing into it.",
            [_LINK],
        )
    if runs := _would_run(program):
        yield Finding(
            WARNING,
            "loader",
            f"{path} {runs}: the loader is not run, so that nothing of the program runs",
            "It is unknown whether the program would get the library.",
            ["Start it with the library, and run numalloc doctor PID"],
        )
        return
    preload = preload_of(case, library)
    bound = loader.asked(program.interpreter, path, preload, case.environment)
    yield from _bound(program, bound, library, preload)
    yield from _notes(case, program, bound)


def _would_run(program: Elf) -> str:
    """The code that running the loader would execute."""
    if not loader.is_the_systems(program.interpreter):
        return f"has a loader of its own, {program.interpreter}"
    return f"makes the loader run the auditor {listed(program.auditors)}" if program.auditors else ""


_LINK = "Link the program with the library: cc ... -lnumalloc, or libnumalloc.a for a static one"


def _out_of_reach(case: Case, program: Elf, library: Elf) -> Finding | None:
    """Findings for which the loader is not needed."""
    path = program.path
    if program.kind != library.kind:
        return Finding(
            BAD,
            "architecture",
            f"{path} is for {_machine(program)}, the library for {_machine(library)}",
            "The loader ignores a library for another processor.",
            ["Build the library for that processor, or take the program for this one"],
        )
    if program.static:
        if "numalloc" in program.brings:
            return Finding(OK, "library", f"{path} is static and linked with numalloc (malloc only: threads are not bound)")
        kind = "static-pie" if program.is_pie else "static"
        if program.go:
            return Finding(
                BAD,
                "static",
                f"{path} is a {kind} Go program",
                "It has Go's own allocator and no loader. malloc is called by cgo only.",
            )
        return Finding(
            BAD,
            "static",
            f"{path} is {kind}: it has no loader to preload a library",
            "It uses the malloc that it was linked with.",
            [_LINK],
        )
    if program.musl:
        return Finding(
            BAD,
            "musl",
            f"{path} is for musl ({program.interpreter})",
            "The library is built for glibc, and musl's loader cannot resolve its symbols.",
            ["Use a program built for glibc, for example from an image of Debian instead of Alpine"],
        )
    if not loader.GLIBC.fullmatch(os.path.basename(program.interpreter)):
        return Finding(BAD, "loader", f"{path} has a loader that is not glibc's: {program.interpreter}", "The library is built for glibc.")
    if not os.path.exists(program.interpreter):
        return Finding(BAD, "loader", f"{path} names the loader {program.interpreter}, which does not exist", "It cannot be started.")
    if (found := secure.reason(path, case.process.no_new_privileges)) and found[1]:
        return Finding(
            BAD,
            "secure-execution",
            f"{path} is {found[0]}",
            "The loader preloads no library given by a path into a program with raised privileges, and the library reads no options there.",
            [_LINK],
        )
    return None


def _machine(one: Elf) -> str:
    return f"{one.machine.removeprefix('EM_').lower().replace('_', '-')}, {one.bits} bit"


def preload_of(case: Case, library: Path) -> str:
    """Puts the library first, unless LD_PRELOAD contains it already."""
    others = case.environment.get("LD_PRELOAD", "").replace(":", " ").split()
    if any(loader.same(other, str(library)) for other in others):
        return " ".join(others)
    return " ".join([str(library), *others])


def _bound(program: Elf, bound: loader.Bound, library: Path, preload: str) -> Iterator[Finding]:
    if bound.missing:
        yield Finding(
            BAD,
            "missing-library",
            f"{program.path} cannot be started: {listed(bound.missing)} not found",
            "The loader ends the program.",
        )
        return
    sanitizers = program.sanitizers or elf.sanitizer_libraries(os.path.basename(file) for file in bound.loaded)
    if sanitizers:
        yield _sanitized(program, bound, sanitizers)
        return
    if not any(loader.same(file, str(library)) for file in bound.loaded):
        words = f": {bound.complaints[0]}" if bound.complaints else ""
        yield Finding(
            BAD,
            "library",
            f"The loader does not load the library into {program.path}{words}",
            "The program uses another malloc.",
        )
        return
    yield from _leads(program, bound, library, preload)
    operators = bound.leads_of(library, loader.OPERATORS)
    if owners := sorted({target for stray in operators.values() for target in stray.values()}):
        yield Finding(
            NOTE,
            "operators",
            f"Operators new and delete are replaced by {listed(owners)}",
            "The C++ standard allows this. Their calls of malloc still go to the library.",
        )


def _sanitized(program: Elf, bound: loader.Bound, sanitizers: list[str]) -> Finding:
    shared_asan = any("libasan" in os.path.basename(file) for file in bound.loaded)
    why = "A sanitizer's malloc must know every block. The library steps aside and passes all calls to it."
    mend = ["Measure a build without -fsanitize"]
    if shared_asan:
        why += " gcc's AddressSanitizer also ends a program in which another library precedes it."
        mend.append("To start it nevertheless: LD_PRELOAD='libasan.so libnumalloc.so', or link with -static-libasan")
    return Finding(BAD, "sanitizer", f"{program.path} runs under {listed(sanitizers)}", why, mend)


def _leads(program: Elf, bound: loader.Bound, library: Path, preload: str) -> Iterator[Finding]:
    stray = _without_stubs(bound.leads_of(library, loader.ALLOCATES), program)
    served = bound.served(library)
    others = {target for targets in stray.values() for target in targets.values()}
    keep_to_themselves = {file for file in bound.loaded if not loader.same(file, str(library)) and elf.keeps_its_malloc(file)}
    if "numalloc" in program.brings and not program.hides_malloc:
        yield Finding(OK, "library", f"{program.path} is linked with libnumalloc.a (malloc only: threads are not bound)")
    elif "malloc" in program.defined or program.hides_malloc:
        why = "The loader finds it before any preloaded one: the library serves no calls."
        if program.hides_malloc:
            why = "Its own calls do not go through the loader: the library serves only the libraries that it loads."
        yield Finding(
            BAD,
            "own-malloc",
            f"{program.path} has a malloc of its own",
            why,
            ["Build the program without it (such as -DUSE_JEMALLOC=no), or link it with numalloc instead"],
        )
    elif stray and not served:
        yield Finding(
            BAD,
            "own-malloc",
            f"malloc comes from {listed(sorted(others))}, not from the library",
            "It precedes the library, and the first malloc is used.",
            [f"LD_PRELOAD='{library}' alone, or before the others; it is '{preload}'"],
        )
    elif stray or keep_to_themselves:
        yield Finding(
            WARNING,
            "own-malloc",
            f"{listed(sorted(others | keep_to_themselves))} has a malloc of its own, to which some calls lead",
            "A library linked with -Bsymbolic uses its own malloc. numalloc does not know these blocks: if other code frees "
            "one, the program ends.",
            ["Use a build of that library without a malloc of its own"],
        )
    else:
        yield Finding(OK, "library", f"The library serves {program.path}: malloc of {count(len(served), 'file')} leads to it", "", [])


def _without_stubs(stray: dict[str, dict[str, str]], program: Elf) -> dict[str, dict[str, str]]:
    """A program at a fixed address that takes the address of free has a stub of that name, which jumps to the real one."""

    def is_stub(name: str, target: str) -> bool:
        return name not in program.defined and loader.same(target, str(program.path))

    left = {file: {name: target for name, target in targets.items() if not is_stub(name, target)} for file, targets in stray.items()}
    return {file: targets for file, targets in left.items() if targets}


def _notes(case: Case, program: Elf, bound: loader.Bound) -> Iterator[Finding]:
    names = [os.path.basename(file) for file in bound.loaded]
    pools = [pool for start, pool in _POOL_LIBRARIES.items() if any(name.startswith(start) for name in names)]
    for name in sorted({*program.brings, *pools}):
        if name in _POOLS:
            yield Finding(
                NOTE,
                "own-pools",
                f"{program.path} is {name}: {_POOLS[name][0]}",
                "The library sees only the rest.",
                _POOLS[name][1],
            )
        elif name not in ("numalloc", "Ruby"):
            yield Finding(
                NOTE,
                "own-pools",
                f"{program.path} has functions of {name} under names of their own",
                "Its calls of these functions reach neither malloc nor the library.",
                [f"Build it without {name}"],
            )
    if program.go:
        yield Finding(
            NOTE,
            "own-pools",
            f"{program.path} is a Go program",
            "Go has its own allocator; the library serves C code that Go calls (cgo).",
        )
    if case.option("deepbind") == "keep" and program.interpreter:
        yield Finding(
            WARNING,
            "deepbind",
            "NUMALLOC_DEEPBIND=keep: libraries opened with RTLD_DEEPBIND use libc's malloc",
            "A program in which one side frees memory of the other ends.",
            ["NUMALLOC_DEEPBIND=share, the default"],
        )
