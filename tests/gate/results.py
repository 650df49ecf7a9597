"""Verdicts of single tests, read from the JUnit files of ctest and pytest."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# A machine that did not boot is the emulator's or the host's fault: numalloc_tools.guest.batch says so.
NOT_BOOTED = re.compile(r"^(failed on setup with \")?(numalloc_tools\.guest\.batch\.)?NotBooted: the machine did not boot")
TIME_LIMIT = "Failed: Timeout"
WITH_SEED = "NUMALLOC_TEST_SEED=${NUMALLOC_TEST_SEED:-1}"
_SKIPPED_CASE = re.compile(r"^\[  SKIPPED \] ([\w/.]+)(?: \(|$)", re.MULTILINE)


@dataclass
class Test:
    __test__ = False  # for pytest
    name: str  # as ctest or pytest takes it
    verdict: str  # passed, failed, skipped, unstable
    seconds: float
    output: str = ""
    repeat: str = ""  # the command that runs it alone
    timed_out: bool = False  # and had printed nothing
    not_booted: bool = False
    limit: float = 0  # seconds; 0: not known

    @property
    def repeat_alone(self) -> str:
        """All tests of a machine that did not boot share one."""
        return self.repeat.partition("::")[0].replace("'", "") if self.not_booted else self.repeat


def limits_of_ctest(folder: Path) -> dict[str, float]:
    """Seconds that each test may take."""
    done = subprocess.run(["ctest", "--test-dir", str(folder), "--show-only=json-v1"], capture_output=True, text=True, timeout=300)
    tests = json.loads(done.stdout)["tests"] if done.returncode == 0 else []
    found = {test["name"]: {one["name"]: one["value"] for one in test.get("properties", [])} for test in tests}
    return {name: float(properties.get("TIMEOUT", 0)) for name, properties in found.items()}


def of_ctest(junit: Path, log: str, folder: str) -> list[Test]:
    stopped = set(re.findall(r"Test +#\d+: (\S+) \.+ *\*+Timeout", log))
    tests = []
    for case in cases(junit):
        name = case.get("name", "")
        output = case.findtext("system-out") or ""
        verdict = "passed" if case.get("status") == "run" else "skipped" if was_skipped(case) else "failed"
        repeat = f"{WITH_SEED} ctest --test-dir {folder} --output-on-failure --no-tests=error -R '^{re.escape(name)}$'"
        tests.append(Test(name, verdict, float(case.get("time") or 0), output, repeat, name in stopped and not output.strip()))
        if verdict == "passed":
            skipped = dict.fromkeys(_SKIPPED_CASE.findall(output))
            tests += [Test(f"{name}/{case}", "skipped", 0, printed_by(case, output), repeat) for case in skipped]
    return tests


def printed_by(case: str, output: str) -> str:
    """By a case of GoogleTest's that was skipped."""
    return output.partition(f"[ RUN      ] {case}\n")[2].partition("[  SKIPPED ]")[0]


def was_skipped(case: ElementTree.Element) -> bool:
    """By its exit status or by what it printed. ctest writes `notrun` also where a program is missing."""
    skipped = case.find("skipped")
    return case.get("status") == "disabled" or (skipped is not None and skipped.get("message", "").startswith("SKIP_"))


def of_pytest(junit: Path, python: str) -> list[Test]:
    """Written with junit_logging=all: what the test printed is there."""
    tests = []
    for case in cases(junit):
        name = re.sub(r"@[\w.-]+$", "", case.get("name", ""))
        node = f"{case.get('file')}::{name}" if case.get("file") else name
        bad = [part for part in case if part.tag in ("failure", "error")]
        skipped = case.find("skipped")
        says = [part.get("message", "") for part in bad]
        printed = "".join(case.findtext(tag) or "" for tag in ("system-out", "system-err"))
        output = (
            skipped.get("message", "")
            if skipped is not None
            else "\n".join(f"{part.get('message', '')}\n{part.text or ''}" for part in bad)
        )
        verdict = "failed" if bad else "skipped" if skipped is not None else "passed"
        repeat = f"{WITH_SEED} {python} -m pytest {shlex.quote(node)}"
        test = Test(node, verdict, float(case.get("time") or 0), output + printed, repeat)
        test.timed_out = any(one.startswith(TIME_LIMIT) for one in says) and not _without_headings(printed)
        test.limit = next((float(one.get("value", 0)) for one in case.iter("property") if one.get("name") == "limit"), 0)
        test.not_booted = node.startswith("tests/numa/") and any(NOT_BOOTED.search(one) for one in says)
        tests.append(test)
    return tests


def _without_headings(printed: str) -> str:
    return re.sub(r"^-+ .* -+$", "", printed, flags=re.MULTILINE).strip()


def cases(junit: Path) -> list[ElementTree.Element]:
    """None where the runner wrote none, or a part."""
    try:
        return list(ElementTree.parse(junit).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return []


def may_be_repeated(test: Test) -> bool:
    """Once and alone: a machine that did not boot, or a test that its time limit stopped before it had said anything. Never
    for a signal, a sanitizer's report, a failed check or a wrong answer."""
    return test.verdict == "failed" and (test.not_booted or test.timed_out)


def _table(path: Path) -> list[dict]:
    return tomllib.loads(path.read_text()).get("test", []) if path.is_file() else []


def quarantined(tests: Path) -> list[str]:
    return [row["name"] for row in _table(tests / "quarantine.toml")]


class Skips:
    """The list of tests that may be skipped: where one of `conditions` holds that the row names, and for the row's reason."""

    def __init__(self, tests: Path, conditions: set[str]):
        rows = _table(tests / "skips.toml")
        self._allowed = [(row["name"], row.get("says", "")) for row in rows if row.get("where", "") in conditions | {""}]

    def unexpected(self, tests: list[Test]) -> list[Test]:
        return [test for test in tests if test.verdict == "skipped" and not self.allows(test)]

    def allows(self, test: Test) -> bool:
        return any(re.fullmatch(name, test.name) and re.search(says, test.output) for name, says in self._allowed)
