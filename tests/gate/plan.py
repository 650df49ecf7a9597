"""The stages: the gate, and what --full runs beside it. CONTRIBUTING.md says what may be in the gate."""

import re
from dataclasses import dataclass
from pathlib import Path

from surroundings import ROOT, cpus

PYTHON = str(ROOT / ".venv/bin/python")
HOUR = 3600
# What a build folder knows of options and compilers. The objects stay, which `cmake --fresh` removes.
FORGET = ("sh", "-c", 'rm -rf "$0/CMakeCache.txt" "$0"/CMakeFiles/[0-9]*')


@dataclass(frozen=True)
class Stage:
    name: str
    commands: tuple[tuple[str, ...], ...]  # the first that fails ends the stage
    tests: str = ""  # whose JUnit file it writes: ctest, pytest, or none
    folder: str = ""  # of ctest
    limit: int = HOUR  # seconds; finds hangs only
    online: bool = False
    gates: bool = True  # whether its failure rejects a change


def junit_of(logs: Path, stage: Stage) -> Path:
    return logs / f"{stage.name}.xml"


def _ctest(name: str, preset: str, *words: str, gates: bool = True, online: bool = False) -> Stage:
    command = ("ctest", "--preset", preset, "-j", str(cpus()), "--no-tests=error", "--test-output-size-passed", "10000000",
               "--test-output-size-failed", "200000", "--output-junit", f"@logs@/{name}.xml", *words)  # fmt: skip
    return Stage(name, (command,), "ctest", f"build/{preset}", gates=gates, online=online)


def _pytest(name: str, *words: str, gates: bool = True, online: bool = False, limit: int = HOUR) -> Stage:
    # xunit1 has the file of each test.
    command = (PYTHON, "-m", "pytest", "-n", str(cpus()), "--dist", "loadgroup", "-o", "junit_family=xunit1", "-o", "junit_logging=all",
               f"--junitxml=@logs@/{name}.xml", *words)  # fmt: skip
    return Stage(name, (command,), "pytest", gates=gates, online=online, limit=limit)


def _configured(preset: str, *define: str) -> tuple[tuple[str, ...], ...]:
    return ((*FORGET, f"build/{preset}"), ("cmake", "--preset", preset, *define))


def _cmake(name: str, preset: str, *targets: str, define: tuple[str, ...] = (), gates: bool = True) -> Stage:
    build = ("cmake", "--build", "--preset", preset, *(("--target", *targets) if targets else ()))
    return Stage(name, (*_configured(preset, *define), (*build, "-j", str(cpus()))), gates=gates)


RELEASE = ("-D", "NUMALLOC_WERROR=ON", "-D", f"NUMALLOC_TOOLS_PYTHON={PYTHON}")
LIBRARIES = ("numalloc_shared", "numalloc_static", "numalloc_binding", "numalloc_hardened")


def gate(quarantined: list[str]) -> list[Stage]:
    out = [name for name in quarantined if "::" not in name]
    without = ("-E", f"^({'|'.join(map(re.escape, out))})$") if out else ()
    static = _ctest("static", "release", "-L", "^static$", *without)
    return [
        Stage("static", (*_configured("release", *RELEASE), *static.commands), "ctest", static.folder),
        _cmake("build-release", "release", *LIBRARIES, "tests/programs/all", define=RELEASE),
        _cmake("build-tsan", "tsan"),
        _cmake("build-ubsan", "ubsan"),
        _ctest("unit-tsan", "tsan", "-L", "^unit$", "-LE", "^full$", *without),
        _ctest("unit-ubsan", "ubsan", "-L", "^unit$", "-LE", "^full$", *without),
        _ctest("programs", "release", "-L", "^(programs|survive|bugs|structure)$", "-LE", "^(full|static)$", *without),
        _pytest("tools", "tools", "tests/gate", "research"),
        _pytest("machine", "-m", "not full", "tests/numa/test_gate.py", limit=3 * HOUR),
    ]


def rest(quarantined: list[str]) -> list[Stage]:
    aarch64 = ("sh", "-c", f"cmake --preset aarch64 && cmake --build --preset aarch64 --target $({PYTHON} tests/numa/aarch64_choice.py)")

    def others(name: str, *words: str) -> Stage:
        return Stage(name, (words,), limit=2 * HOUR, online=True, gates=False)

    stages = [
        _cmake("build-release-all", "release", define=RELEASE, gates=False),
        _cmake("build-contention", "release", "contention", define=RELEASE, gates=False),
        _cmake("build-debug", "debug", *LIBRARIES[:3], "tests/programs/all", "soak", gates=False),
        Stage("build-aarch64", (aarch64,), gates=False),
        _ctest("release-rest", "release", "-L", "^(full|real|fuzz|unit)$", gates=False, online=True),
        # The unit tests run with the same assertions under ubsan. Figures are of the library that users run.
        _ctest("debug", "debug", "-L", "^(programs|survive)$", "-E", "^(figures|replaced)[.]|_after_[36]0_days$", gates=False),
        _pytest("tools-rest", "-m", "full", "--durations", "20", "tests/numa", "tools", "tests/gate", "research", gates=False, online=True),
        others("world", PYTHON, "tests/world", "--quick"),
        _pytest("world-tests", "tests/world", gates=False, online=True),
        others("tidy", "sh", "scripts/tidy.sh"),
        others("docs", "sh", "scripts/docs.sh"),
        others("wheel", "sh", "scripts/wheel.sh"),
        others("fuzz", "sh", "scripts/fuzz.sh", "60"),
        others("soak", "sh", "scripts/soak.sh", "20000000", "8", "600"),
    ]
    if quarantined:
        stages.insert(5, others("quarantine", PYTHON, "tests/gate/flaky.py", "--times", "6", *quarantined))
    return stages
