"""`numalloc doctor` and the library's options in the environment: yours, or a process's."""

import os
import subprocess

import pytest
from doctor_command import doctor, numalloc
from limits import LIMIT
from numalloc_tools.options_table import options


@pytest.mark.parametrize(
    ("name", "finding", "severity", "mend"),
    [
        ("NUMALLOC_BINDNG", "option-bindng", "warning", "NUMALLOC_BINDING=none"),
        ("NUMALLOC_PURGE_DELAYS", "option-purge-delays", "warning", "NUMALLOC_PURGE_DELAY=none"),
        ("NUMALLOC_MEMORYBINDING", "option-memorybinding", "warning", "NUMALLOC_MEMORY_BINDING=none"),
        ("numalloc_thp", "option-thp", "warning", "NUMALLOC_THP=none"),
        ("NUMALLOC_TEST_EVERYTHING", "option-test-everything", "note", None),
        ("NUMALLOC_", "option-", "note", None),
        ("NUMALLOC_HAND_OVER", "option-hand-over", "note", None),
    ],
)
def test_unknown_name_is_reported(name, finding, severity, mend):
    found = doctor(**{name: "none"})[finding]
    assert found["severity"] == severity and name in found["what"]
    assert found["mend"] == ([mend] if mend else [])


@pytest.mark.parametrize("option", options(), ids=lambda option: option.name)
def test_value_that_the_library_does_not_understand_is_reported(option):
    bad = "" if option.kind == "Path" else "nonsense"
    found = doctor(**{option.variable: bad})
    name = f"option-{option.name.replace('_', '-')}"
    if option.kind == "Path":  # any text is one; an empty value is as none at all
        assert name not in found
        return
    assert found[name]["severity"] == "warning"
    assert found[name]["what"] == f"{option.variable}=nonsense is not understood"
    assert option.default in found[name]["why"]
    assert found[name]["mend"] == [f"Accepted: {option.accepted}"]


def test_library_rejects_the_same_value():
    """What is judged by a value goes by the default, as the library does."""
    assert "NUMALLOC_THP=off" in doctor(NUMALLOC_THP="off")["huge-pages"]["what"]
    assert doctor(NUMALLOC_THP="Off")["huge-pages"] == doctor()["huge-pages"]


def test_options_in_force_are_listed():
    found = doctor(NUMALLOC_THP="on", NUMALLOC_PURGE_DELAY="5s", NUMALLOC_VERBOSE="")["options"]
    assert found["severity"] == "ok"
    assert found["what"].endswith(": NUMALLOC_PURGE_DELAY=5s and NUMALLOC_THP=on")
    assert "options" not in doctor()


def test_options_of_a_process_are_its_own():
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMALLOC_")}
    process = subprocess.Popen(["sleep", "60"], env=environment | {"NUMALLOC_PURGE_DELLAY": "1", "NUMALLOC_THP": "of"})
    try:
        done = numalloc("doctor", process.pid, NUMALLOC_BINDNG="none")
    finally:
        process.kill()
        process.wait(timeout=LIMIT)
    assert "NUMALLOC_PURGE_DELLAY is not an option" in done.stdout and "NUMALLOC_PURGE_DELAY=1" in done.stdout
    assert "NUMALLOC_THP=of is not understood" in done.stdout
    assert "BINDNG" not in done.stdout
