"""The gate runs those tests of research/ that take a moment; the rest is marked full."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
IN_THE_GATE = {"test_commands.py", "test_paper.py", "test_scope_hardware.py", "test_scope_model.py"}
sys.path.append(str(HERE.parents[1] / "tools/tests"))  # what both folders of tests use


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if HERE in item.path.parents and item.path.name not in IN_THE_GATE:
            item.add_marker(pytest.mark.full("of research/, which nothing of the product uses"))
