"""The library under test, and one virtual machine for each group of checks: booting takes longer than
most checks, so a module says which jobs it has, one machine runs them all, and each is a test."""

import os
from pathlib import Path

import pytest
from jobs import ROOT
from numalloc_tools.guest import batch

HERE = Path(__file__).parent
IN_THE_GATE = "test_gate.py"
# Seconds for a test with a machine of its own. The lab gives a machine up earlier; this ends what hangs beside it.
TIMEOUT = 7200


@pytest.fixture(scope="session")
def library() -> str:
    path = Path(os.environ.get("NUMALLOC_LIBRARY", ROOT / "build/release/libnumalloc.so"))
    if not path.is_file():
        pytest.fail(f"{path} is missing; build it with cmake --preset release && cmake --build --preset release")
    return str(path)


@pytest.hookimpl(tryfirst=True)  # before xdist, which puts the groups into the names of the tests
def pytest_collection_modifyitems(items) -> None:
    """With pytest-xdist (-n 2 --dist loadgroup): tests that share a machine go to one worker. And all but one module need
    a machine too long for the gate."""
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.timeout(TIMEOUT))
        if item.path.name != IN_THE_GATE:
            item.add_marker(pytest.mark.full("boots a virtual machine of its own"))
        if "report" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group(item.module.__name__))
        elif group := getattr(item, "callspec", None) and item.callspec.params.get("group"):
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="module")
def report(request, library) -> batch.Report:
    """What the jobs of the test's module did."""
    return request.module.JOBS.run(library)
