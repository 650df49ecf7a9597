"""The tests of the build folder of another architecture, as ctest has them, for a virtual machine that can run
them: which of them go there, and why the others stay. This is the one list."""

import json
import subprocess
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from numalloc_tools.lab import batch

PYTHON = "Python drives it from this machine"
STAY = {
    "survive.children": "its children are preloaded, and the guest's shell, busybox, is linked statically",
    "unit.children_test": "its children run Python",
    "survive.deny_*_python": "it runs this machine's Python",
    "survive.setuid": "it compiles a program, and installs it as another user's",
    "real.*": "they run programs that are installed on this machine",
    "structure.*": "they are about sources and files, and run here",
    "figures.startup": "its figures are times, which a translator does not keep",
}
SLOWER = 8  # than ctest's own time limits allow for
ROOT = Path(__file__).resolve().parents[2]


@cache
def all_tests(build: Path) -> dict[str, dict]:
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout
    return {test["name"]: test for test in json.loads(listing)["tests"]}


def reason_to_stay(name: str, test: dict) -> str:
    if Path(test["command"][0]).name.startswith("python"):
        return PYTHON
    return next((reason for pattern, reason in STAY.items() if fnmatchcase(name, pattern)), "")


def going(build: Path, patterns: list[str]) -> list[str]:
    """The names of the tests that fit one of the patterns and go."""
    return [
        name for name, test in all_tests(build).items()
        if not reason_to_stay(name, test) and any(fnmatchcase(name, pattern) for pattern in patterns)
    ]  # fmt: skip


def jobs(build: Path, names: list[str]) -> list[batch.Job]:
    planned = []
    for name in names:
        test = all_tests(build)[name]
        limit = next((one["value"] for one in test["properties"] if one["name"] == "TIMEOUT"), 120)
        program, *arguments = test["command"]
        if Path(program).is_relative_to("/usr/bin"):  # the guest has one of its own
            program = Path(program).name
        planned.append(batch.Job(name, [program, *arguments], timeout=int(SLOWER * limit)))
    return planned


# Tests need these beside what their commands begin with.
COMMANDS = ["prlimit"]
FILES = [str(ROOT / "docs/options.md"), str(ROOT / "tests/programs/preload.sh")]
