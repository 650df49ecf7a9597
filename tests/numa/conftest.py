"""The library under test, and one virtual machine for each group of checks: booting takes longer than
most checks, so a module says which jobs it has, one machine runs them all, and each is a test."""

import os
from pathlib import Path

import pytest
from numalloc_tools.lab import batch, programs
from numalloc_tools.lab.run_command import build_machine

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).with_name("programs")


@pytest.fixture(scope="session")
def library() -> str:
    path = Path(os.environ.get("NUMALLOC_LIBRARY", ROOT / "build/release/libnumalloc.so"))
    if not path.is_file():
        pytest.fail(f"{path} is missing; build it with cmake --preset release && cmake --build --preset release")
    return str(path)


@pytest.hookimpl(tryfirst=True)  # before xdist, which puts the groups into the names of the tests
def pytest_collection_modifyitems(items) -> None:
    """With pytest-xdist (-n 2 --dist loadgroup): tests that share a machine go to one worker."""
    for item in items:
        if "report" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(item.module.__name__))
        elif group := getattr(item, "callspec", None) and item.callspec.params.get("group"):
            item.add_marker(pytest.mark.xdist_group(group))


def pytest_configure(config) -> None:
    config.addinivalue_line("markers", "xdist_group(name): the machine that a test needs")


class Jobs:
    """Collects the jobs of one machine."""

    def __init__(self, **machine):
        self.machine = build_machine(**{"cpus_per_node": "2", "memory_per_node": "512M", "distance": "ladder", **machine})
        self._planned: dict[str, dict] = {}

    def add(self, name: str, program: str, *arguments, options=None, around=(), setup="", library="") -> None:
        """`program` with the library under test preloaded, or another of its build, and its `options`; `around` is a
        command such as numactl that starts it."""
        self._planned[name] = {
            "program": program,
            "arguments": arguments,
            "options": options or {},
            "around": around,
            "setup": setup,
            "library": library,
        }

    @property
    def names(self) -> list[str]:
        return list(self._planned)

    def run(self, library: str, **switches) -> batch.Report:
        jobs = []
        for name, plan in self._planned.items():
            program = str(programs.built(plan["program"], PROGRAMS))
            command = [*plan["around"], program, *map(str, plan["arguments"])]
            environment = {f"NUMALLOC_{option.upper()}": value for option, value in plan["options"].items()}
            jobs.append(
                batch.Job(
                    name,
                    command,
                    {"LD_PRELOAD": str(Path(library).with_name(plan["library"])) if plan["library"] else library, **environment},
                    plan["setup"],
                )
            )
        return batch.run(self.machine, jobs, **switches)


@pytest.fixture(scope="module")
def report(request, library) -> batch.Report:
    """What the jobs of the test's module did."""
    return request.module.JOBS.run(library)


def passed(report: batch.Report, name: str) -> batch.Result:
    assert name in report.results, f"did not run; the machine said: {report.findings}"
    result = report.results[name]
    assert result.oom_kills == 0, f"the out-of-memory killer was at work\n{result.stdout}"
    assert result.status == 0, f"exit status {result.status}\n{result.stdout}\n{result.stderr}"
    return result
