"""The gate itself: a failure is never lost, and what it says of one fits into its last lines."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import plan
import report
import results
import stages
import surroundings
from plan import Stage
from results import Skips, Test

STAGE = Stage("programs", (), "ctest", "build/release")
CTEST = """<testsuite>
<testcase name="a.good" time="1" status="run"><system-out>[ RUN      ] Suite.Case
a.cpp:1: Skipped
one CPU
[  SKIPPED ] Suite.Case (0 ms)
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
    assert found["a.good/Suite.Case"].output == "a.cpp:1: Skipped\none CPU\n"
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
        '[[test]]\nname = "a[.]b"\nbecause = "-"\n[[test]]\nname = "c[.].*"\nbecause = "-"\nwhere = "not root"\nsays = "needs root"\n'
    )
    skipped = [Test(name, "skipped", 0, "needs root, alas") for name in ("a.b", "axb", "c.a")]
    skipped.append(Test("c.b", "skipped", 0, "no compiler"))
    assert [test.name for test in Skips(tmp_path, {"root"}).unexpected(skipped)] == ["axb", "c.a", "c.b"]
    assert [test.name for test in Skips(tmp_path, {"not root"}).unexpected(skipped)] == ["axb", "c.b"]


@pytest.mark.parametrize("failures", [1, 3, 30])
def test_a_failure_is_said_in_sixty_lines(tmp_path, failures):
    tests = [Test(f"t{number}", "failed", 1, "line\n" * 100 + f"last of {number}", f"again {number}") for number in range(failures)]
    lines = report.failures([done(8, *tests)], Skips(tmp_path, set()), "load 9", 1)
    assert len(lines) <= report.LINES
    text = "\n".join(lines)
    for said in ("FAILED t0", "again 0", "seed 1", "last of 0", "load 9"):
        assert said in text


def in_a_gate(*lines: str) -> list[str]:
    """What these lines of Python print where all children are the stage's."""
    before = f"import os, sys; sys.path.insert(0, {str(Path(stages.__file__).parent)!r}); import plan, stages; from pathlib import Path"
    code = "\n".join((before, "stages.adopt_orphans(); stages.HEARTBEAT = .1", *lines))
    return subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout.splitlines()


@pytest.mark.parametrize(("ends", "status"), [("exit 3", "3"), ("exec sleep 1000", "124")])
def test_all_that_a_command_started_ends_with_it(tmp_path, ends, status):
    """In sessions of their own as well, and where the limit ends it: here once the command has said something twice."""
    os.symlink(shutil.which("sleep"), os.fsencode(tmp_path / "s") + b"l\xffeep")  # a name that is no text
    far = "setsid sh -c 'echo $$ >far; exec ./sl*eep 1000' & until [ -s far ]; do sleep .01; done"
    command = f"cd {tmp_path}; sleep 1000 & echo $! >near; {far}; echo lives; {ends}"
    said = in_a_gate(
        "class Limit(float):",
        "    def __lt__(self, spent): return spoken.count('lives') > 1",
        "spoken = []",
        "def say(line): print(line); spoken.append(line.split()[-1])",
        f"print(stages.run_command(['sh', '-c', {command!r}], os.environ, Path({str(tmp_path / 'log')!r}), Limit(), say))",
    )
    assert said[-1] == status
    assert not any(running(int((tmp_path / name).read_text())) for name in ("near", "far"))
    assert any(line.startswith("left behind, and ended now: ./sl") for line in said)


def test_orphans_are_reaped_while_a_command_runs(tmp_path):
    """A test may wait until a process is gone."""
    command = f"cd {tmp_path}; (sh -c 'echo $$ >pid' &); until [ -s pid ]; do :; done; while kill -0 $(cat pid); do sleep .01; done"
    said = in_a_gate(f"print(stages.run_command(['sh', '-c', {command!r}], os.environ, Path({str(tmp_path / 'log')!r}), 300, print))")
    assert said[-1] == "0"


@pytest.mark.parametrize(("status", "verdict"), [(0, "unstable"), (1, "failed"), (77, "failed")])
def test_a_repeat_that_is_skipped_is_no_pass(tmp_path, status, verdict):
    (tmp_path / "CTestTestfile.cmake").write_text(
        "if(DEFINED ENV{NUMALLOC_TEST_SEED})\n"  # which the command of a repeat sets
        f'add_test(a sh -c "exit {status}")\nset_tests_properties(a PROPERTIES SKIP_RETURN_CODE 77)\n'
        "else()\nadd_test(a sleep 1000)\nset_tests_properties(a PROPERTIES TIMEOUT 1)\nendif()\n"
    )
    command = ("ctest", "--test-dir", str(tmp_path), "--output-junit", "@logs@/once.xml")
    said = in_a_gate(
        "from types import SimpleNamespace",
        "around = SimpleNamespace(environment=lambda *_: {'PATH': os.environ['PATH']}, around=lambda _: [])",
        f"stage = plan.Stage('once', ({command!r},), 'ctest', {str(tmp_path)!r})",
        f"print(*(test.verdict for test in stages.run(stage, around, Path({str(tmp_path)!r}), False, print).tests))",
    )
    assert said[-1] == verdict


def test_options_of_an_earlier_configuration_are_forgotten(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(
        'cmake_minimum_required(VERSION 3.22)\nproject(p LANGUAGES NONE)\noption(TOLD "" OFF)\nfile(WRITE ${CMAKE_BINARY_DIR}/told ${TOLD})\n'
    )
    build, objects = tmp_path / "build", tmp_path / "build/CMakeFiles/a.dir/a.o"
    configure = ["cmake", "-S", str(tmp_path), "-B", str(build)]
    subprocess.run([*configure, "-D", "TOLD=ON"], check=True, timeout=300)
    objects.parent.mkdir()
    objects.touch()
    for command in ((*plan.FORGET, str(build)), configure):
        subprocess.run(command, check=True, timeout=300)
    assert ((build / "told").read_text(), objects.exists()) == ("OFF", True)
    for stage in plan.gate([]):
        for before, command in zip((None, *stage.commands), stage.commands, strict=False):
            if command[:2] == ("cmake", "--preset"):
                assert before == (*plan.FORGET, f"build/{command[2]}"), stage.name


def test_a_quarantined_test_runs_in_each_build_that_has_it():
    (stage,) = [stage for stage in plan.rest(["RunTree.Grows", "survive.signals"]) if stage.name == "quarantine"]
    assert stage.commands[0][1:2] == ("tests/gate/flaky.py",)
    assert stage.commands[0][-2:] == ("RunTree.Grows", "survive.signals")


def test_a_container_without_rights_fails_no_test(tmp_path):
    """Where Docker's profile refuses a call that a test needs, the test is skipped, and tests/skips.toml lists it."""
    forbidden = [sys.executable, "tools/tests/forbidden.py", "EPERM", "unshare,mount,mbind,get_mempolicy,set_mempolicy"]
    chosen = "judged or policies_are_tried or disk"
    files = [f"tools/tests/test_{name}.py" for name in ("doctor", "run_several", "tune_trouble")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", "-m", "not full"]
    command += [f"--junitxml={tmp_path}/junit.xml", "-k", chosen, *files]
    done = subprocess.run([*forbidden, *command], cwd=surroundings.ROOT, capture_output=True, text=True, timeout=500)
    tests = results.of_pytest(tmp_path / "junit.xml", "python")
    assert done.returncode == 0 and len(tests) > 4, done.stdout
    where = {"root" if os.geteuid() == 0 else "not root", "no namespaces"}
    assert not Skips(surroundings.ROOT / "tests", where).unexpected(tests)


def test_who_may_not_mount_has_no_namespaces(tmp_path):
    """As in a chroot, where the network can be cut off."""
    code = (
        f"import sys, pathlib\nsys.path.insert(0, {str(Path(stages.__file__).parent)!r})\nimport surroundings\n"
        f"around = surroundings.Surroundings(pathlib.Path({str(tmp_path)!r}), 1)\n"
        "print(sorted(around.conditions() & {'no namespaces'}), around.can_cut)"
    )
    command = [sys.executable, "tools/tests/forbidden.py", "EPERM", "mount", sys.executable, "-c", code]
    said = subprocess.run(command, cwd=surroundings.ROOT, capture_output=True, text=True, timeout=300)
    assert said.stdout.split()[:2] == ["['no", "namespaces']"], said


def test_limits_of_the_caller_are_not_inherited():
    code = (
        f"import resource, sys\nsys.path.insert(0, {str(Path(stages.__file__).parent)!r})\nimport surroundings\n"
        "print(surroundings.inherit_nothing()['limits when started'])\n"
        "print(resource.getrlimit(resource.RLIMIT_STACK)[0], resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    limits = ["--stack=1048576:8388608", "--nofile=100:200", f"--as={4 << 30}"]
    done = subprocess.run(["prlimit", *limits, sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    said, got = done.stdout.splitlines()
    assert got == f"{8 << 20} 200", "the hard limit where that is lower"
    assert "stack 1048576 nofile 100" in said and f"as {4 << 30}" in said


def test_tests_run_where_programs_may_run(monkeypatch):
    for flags, folder in ((0, "/tmp"), (os.ST_NOEXEC, "/var/tmp"), (os.ST_NOSUID, "/var/tmp")):
        monkeypatch.setattr(os, "statvfs", lambda path, flags=flags: SimpleNamespace(f_flag=flags if str(path) == "/tmp" else 0))
        assert surroundings.folder_for_programs() == Path(folder)


def test_a_build_that_is_there_needs_no_disk_again(tmp_path, monkeypatch):
    monkeypatch.setattr(surroundings, "ROOT", tmp_path)
    assert surroundings.disk_wanted() == surroundings.LEAST_DISK
    (tmp_path / "build/tsan").mkdir(parents=True)
    (tmp_path / "build/tsan/object").write_bytes(b"x" * (1 << 20))
    assert surroundings.disk_wanted() <= surroundings.LEAST_DISK - (1 << 20)


def test_the_limit_of_a_python_test_is_known(tmp_path):
    """Its own, or pytest.ini's."""
    for name in ("conftest.py", "pytest.ini"):
        shutil.copy(surroundings.ROOT / name, tmp_path)
    (tmp_path / "test_it.py").write_text("import pytest\ndef test_a(): pass\n@pytest.mark.timeout(7200)\ndef test_b(): pass\n")
    command = [sys.executable, "-m", "pytest", "-o", "junit_family=xunit1", "--junitxml=junit.xml", "-n", "1", "test_it.py"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=300)
    assert [test.limit for test in results.of_pytest(tmp_path / "junit.xml", "python")] == [600, 7200]


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
