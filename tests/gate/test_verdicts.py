"""The gate itself: a failure is never lost, and what it says of one fits into its last lines."""

import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import report
import results
import stages
from plan import Stage
from results import Skips, Test

STAGE = Stage("programs", (), "ctest", "build/release")
CTEST = """<testsuite>
<testcase name="a.good" time="1" status="run"><system-out>[  SKIPPED ] Suite.Case (0 ms)
[  SKIPPED ] Suite.Case</system-out></testcase>
<testcase name="a.bad" time="2" status="fail"><failure message=""/><system-out>not so</system-out></testcase>
<testcase name="a.slow" time="300" status="fail"><failure message=""/><system-out/></testcase>
<testcase name="a.race" time="300" status="fail"><failure message=""/><system-out>WARNING: ThreadSanitizer</system-out></testcase>
<testcase name="a.missing" time="0" status="notrun"><skipped message="Required Files Missing"/><system-out/></testcase>
<testcase name="a.skipped" time="0" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/><system-out/></testcase>
</testsuite>"""
LOG = "3/4 Test #12: a.slow ......***Timeout 300.01 sec\n4/4 Test #13: a.race .......***Timeout 300.01 sec\n"


def done(status: int, *tests: Test, stage: Stage = STAGE) -> stages.Done:
    return stages.Done(stage, status, 1, 1, Path("log"), list(tests))


def test_what_ctest_wrote(tmp_path):
    junit = tmp_path / "junit.xml"
    junit.write_text(CTEST)
    found = {test.name: test for test in results.of_ctest(junit, LOG, "build/release")}
    verdicts = {name: test.verdict for name, test in found.items()}
    failed = [name for name, verdict in verdicts.items() if verdict == "failed"]
    assert failed == ["a.bad", "a.slow", "a.race", "a.missing"]
    assert (verdicts["a.good"], verdicts["a.good/Suite.Case"], verdicts["a.skipped"]) == ("passed", "skipped", "skipped")
    assert not results.may_be_repeated(found["a.bad"]), "a failed check is never repeated"
    assert results.may_be_repeated(found["a.slow"])
    assert not results.may_be_repeated(found["a.race"]), "it has said something"


def test_what_pytest_wrote(tmp_path):
    junit = tmp_path / "junit.xml"
    case = '<testcase file="{}" name="{}" time="1"><{} message="{}">text</{}>{}</testcase>'
    junit.write_text(
        "<testsuites><testsuite>"
        + case.format(
            "tests/numa/test_gate.py", "a", "error", "failed on setup with &quot;NotBooted: the machine did not boot: 900 s", "error", ""
        )
        + case.format("tools/tests/test_x.py", "b", "failure", "assert 'NotBooted: the machine did not boot' in ''", "failure", "")
        + case.format("tools/tests/test_x.py", "c", "failure", "Failed: Timeout (&gt;600.0s) from pytest-timeout.", "failure", "")
        + case.format("tools/tests/test_x.py", "d", "failure", "Failed: Timeout (&gt;600.0s)", "failure", "<system-out>half</system-out>")
        + "</testsuite></testsuites>"
    )
    found = {test.name.partition("::")[2]: results.may_be_repeated(test) for test in results.of_pytest(junit, "python")}
    assert found == {"a": True, "b": False, "c": True, "d": False}


@pytest.mark.parametrize(
    ("status", "verdicts", "passes"),
    [
        (0, ["passed"], True),
        (8, ["passed", "unstable"], True),
        (8, ["unstable", "failed"], False),
        (8, ["passed"], False),  # the runner has a failure that its file does not name
        (3, ["passed", "unstable"], False),  # the runner itself failed
        (-9, ["passed", "unstable"], False),
        (124, ["passed"], False),
        (0, [], False),
    ],
)
def test_a_stage_passes_only_where_all_of_its_tests_did(status, verdicts, passes):
    assert done(status, *(Test("a", verdict, 1) for verdict in verdicts)).passed == passes


def test_skips_that_are_not_on_the_list_are_found(tmp_path):
    (tmp_path / "skips.toml").write_text(
        '[[test]]\nname = "a[.]b"\nbecause = "-"\n[[test]]\nname = "c"\nbecause = "-"\nwhere = "not root"\n'
    )
    skipped = [Test(name, "skipped", 0) for name in ("a.b", "axb", "c")]
    assert [test.name for test in Skips(tmp_path, {"root"}).unexpected(skipped)] == ["axb", "c"]
    assert [test.name for test in Skips(tmp_path, {"not root"}).unexpected(skipped)] == ["axb"]


@pytest.mark.parametrize("failures", [1, 3, 30])
def test_a_failure_is_said_in_sixty_lines(tmp_path, failures):
    tests = [Test(f"t{number}", "failed", 1, "line\n" * 100 + f"last of {number}", f"again {number}") for number in range(failures)]
    lines = report.failures([done(8, *tests)], Skips(tmp_path, set()), "load 9", 1)
    assert len(lines) <= report.LINES
    text = "\n".join(lines)
    for said in ("FAILED t0", "again 0", "seed 1", "last of 0", "load 9"):
        assert said in text


def test_a_limit_ends_all_that_a_command_started(tmp_path):
    pid = tmp_path / "pid"
    said: list[str] = []
    command = ["sh", "-c", f"sleep 1000 & echo $! >{pid}; wait"]
    stages.HEARTBEAT, before = 0.1, stages.HEARTBEAT
    try:
        assert stages.run_command(command, dict(os.environ), tmp_path / "log", 1, said.append) == 124
    finally:
        stages.HEARTBEAT = before
    assert said, "it says that it lives"
    until = time.monotonic() + 300
    while running(int(pid.read_text())):
        assert time.monotonic() < until
        time.sleep(0.05)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
