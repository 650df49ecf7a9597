"""The tests of the build folder of another architecture, as ctest has them, for a virtual machine that can run
them: which of them go there, and why the others stay. This is the one list."""

import json
import re
import subprocess
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from numalloc_tools.guest import batch

PYTHON = "Python drives it from this machine"
STATIC_SHELL = "its children are preloaded, and the guest's shell, busybox, is linked statically"
STAY = {
    "survive.children": STATIC_SHELL,
    "survive.deny_KILL_children": STATIC_SHELL,
    "survive.sanitizer_*": "it compiles a program",
    "binding.harmless": "it runs children, and with Debian's other allocators, which are this machine's",
    "unit.children_test": "its children run Python",
    "survive.setuid": "it compiles a program, and installs it as another user's",
    "real.*": "they run programs that are installed on this machine",
    "guarded.*_1*": "they do, too",
    "binding.harmless_beside_others": "it runs with Debian's other allocators, which are this machine's",
    "fuzz.*": "they are built by clang for this machine",
    "proof.*": "they are about models, and run here",
    "unit.statistics_reference_test": "it reads a page of documentation",
    "unit.balanced_blocks_test": "it takes more addresses than the guest grants at once",
    "survive.exec_stacks": "it starts /bin/true, which the guest has elsewhere",
    "survive.filtered_execveat": "it does, too",
    "survive.own_calls_*": "they do, too",
    "survive.unlimited_stack_*_compat": "they need setarch",
    "survive.fork_trims_heap": "on several nodes its thread may take memory of two heaps",
    "survive.terabytes": "its figures are those of one node",
    "survive.deny_E*_places": "its calls may fail on several nodes, where moving pages is denied",
    "threads.waiting_requests": "its figures are those of one node",
    "threads.waiting_resident*": "its figures are those of one node",
    "structure.*": "they are about sources and files, and run here",
    "contention.*": "they count how threads of one node meet, and the guest has several",
    "figures.startup": "its figures are times, which a translator does not keep",
}
# Translated code. A tenth of the forks takes a minute, all take ten. A signal takes longer to handle than 0.1 ms: on a busy
# host four threads get some 30 in a second, under glibc as here, so a tenth of them is asked for.
ENVIRONMENT = {
    "survive.fork_storm": {"NUMALLOC_TEST_FORKS": "200"},
    "survive.signals": {"NUMALLOC_TEST_INTERVAL": "10000000", "NUMALLOC_TEST_STRIKES": "500", "NUMALLOC_TEST_SECONDS": "800"},
}
SLOWER = 8  # than ctest's own time limits allow for
ROOT = Path(__file__).resolve().parents[2]


@cache
def all_tests(build: Path) -> dict[str, dict]:
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
    return {test["name"]: test for test in json.loads(listing)["tests"]}


def reason_to_stay(name: str, test: dict) -> str:
    if any(Path(word).name.startswith("python") for word in test["command"]):
        return PYTHON
    return next((reason for pattern, reason in STAY.items() if fnmatchcase(name, pattern)), "")


def going(build: Path, patterns: list[str]) -> list[str]:
    """The names of the tests that fit one of the patterns and go."""
    return [
        name
        for name, test in all_tests(build).items()
        if not reason_to_stay(name, test) and any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def jobs(build: Path, names: list[str]) -> list[batch.Job]:
    planned = []
    for name in names:
        test = all_tests(build)[name]
        limit = next((one["value"] for one in test["properties"] if one["name"] == "TIMEOUT"), 120)
        program, *arguments = test["command"]
        if Path(program).is_relative_to("/usr/bin"):  # the guest has one of its own
            program = Path(program).name
        planned.append(batch.Job(name, [program, *arguments], ENVIRONMENT.get(name, {}), timeout=int(SLOWER * limit)))
    return planned


# Tests need these beside what their commands begin with and name.
COMMANDS = ["prlimit"]
FILES = [str(ROOT / "docs/options.md"), str(ROOT / "tests/programs/preload.sh")]


def files(build: Path, names: list[str]) -> list[str]:
    """What the guest needs beside the commands: also what the tests name in variables and folders of the build."""
    found = set(FILES)
    for name in names:
        for word in all_tests(build)[name]["command"][1:]:
            for path in (Path(part) for part in re.split("[=:]", word)):
                if path.is_relative_to(build):
                    found.update(str(one) for one in [path, *path.rglob("*")] if one.is_file())
    return sorted(found)
