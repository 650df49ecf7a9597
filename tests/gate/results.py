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

# A machine that did not boot is the emulator's or the host's fault: numalloc_tools.lab.batch says so.
NOT_BOOTED = "the machine did not boot"
TIME_LIMITS = ("Timeout (>", "Failed: Timeout")
_SKIPPED_CASE = re.compile(r"^\[  SKIPPED \] ([\w/.]+)(?: \(|$)", re.MULTILINE)


@dataclass
class Test:
    __test__ = False  # for pytest
    name: str  # as ctest or pytest takes it
    verdict: str  # passed, failed, skipped, unstable
    seconds: float
    output: str = ""
    repeat: str = ""  # the command that runs it alone
    timed_out: bool = False
    limit: float = 0  # seconds; 0: not known

    @property
    def repeat_alone(self) -> str:
        """All tests of a machine that did not boot share one."""
        return self.repeat.partition("::")[0].replace("'", "") if NOT_BOOTED in self.output else self.repeat


def limits_of_ctest(folder: Path) -> dict[str, float]:
    """Seconds that each test may take."""
    done = subprocess.run(["ctest", "--test-dir", str(folder), "--show-only=json-v1"], capture_output=True, text=True, timeout=300)
    tests = json.loads(done.stdout)["tests"] if done.returncode == 0 else []
    found = {test["name"]: {one["name"]: one["value"] for one in test.get("properties", [])} for test in tests}
    return {name: float(properties.get("TIMEOUT", 0)) for name, properties in found.items()}


def of_ctest(junit: Path, log: str, folder: str) -> list[Test]:
    timed_out = set(re.findall(r"Test +#\d+: (\S+) \.+ *\*+Timeout", log))
    tests = []
    for case in cases(junit):
        name = case.get("name", "")
        output = case.findtext("system-out") or ""
        verdict = {"run": "passed", "fail": "failed", "notrun": "skipped", "disabled": "skipped"}.get(case.get("status", ""), "failed")
        if verdict == "skipped" and "Unable to find executable" in (
            output + (case.find("skipped").get("message", "") if case.find("skipped") is not None else "")
        ):
            verdict = "failed"
        repeat = f"ctest --test-dir {folder} --output-on-failure -R '^{re.escape(name)}$'"
        tests.append(Test(name, verdict, float(case.get("time") or 0), output, repeat, name in timed_out))
        if verdict == "passed":
            tests += [Test(f"{name}/{case}", "skipped", 0, "", repeat) for case in dict.fromkeys(_SKIPPED_CASE.findall(output))]
    return tests


def of_pytest(junit: Path, python: str) -> list[Test]:
    tests = []
    for case in cases(junit):
        name = re.sub(r"@[\w.-]+$", "", case.get("name", ""))
        node = f"{case.get('file')}::{name}" if case.get("file") else name
        bad = [part for part in case if part.tag in ("failure", "error")]
        skipped = case.find("skipped")
        output = "\n".join(f"{part.get('message', '')}\n{part.text or ''}" for part in bad)
        printed = "".join(case.findtext(tag) or "" for tag in ("system-out", "system-err"))
        timed_out = any(limit in output for limit in TIME_LIMITS)
        if skipped is not None:
            output = skipped.get("message", "")
        verdict = "failed" if bad else "skipped" if skipped is not None else "passed"
        tests.append(
            Test(
                node,
                verdict,
                float(case.get("time") or 0),
                output + printed,
                f"{python} -m pytest {shlex.quote(node)}",
                timed_out and not printed,
            )
        )
    return tests


def cases(junit: Path) -> list[ElementTree.Element]:
    return list(ElementTree.parse(junit).getroot().iter("testcase")) if junit.is_file() else []


def may_be_repeated(test: Test) -> bool:
    """Once and alone: a machine that did not boot, or a test that its time limit stopped before it had said anything. Never
    for a signal, a sanitizer's report, a failed check or a wrong answer."""
    return test.verdict == "failed" and (NOT_BOOTED in test.output or test.timed_out)


def _table(path: Path) -> list[dict]:
    return tomllib.loads(path.read_text()).get("test", []) if path.is_file() else []


def quarantined(tests: Path) -> list[str]:
    return [row["name"] for row in _table(tests / "quarantine.toml")]


class Skips:
    """The list of tests that may be skipped: each always, or where one of `conditions` holds that its row names."""

    def __init__(self, tests: Path, conditions: set[str]):
        rows = _table(tests / "skips.toml")
        self._allowed = [row["name"] for row in rows if row.get("where", "") in conditions | {""}]

    def unexpected(self, tests: list[Test]) -> list[Test]:
        return [test for test in tests if test.verdict == "skipped" and not self.allows(test.name)]

    def allows(self, name: str) -> bool:
        return any(re.fullmatch(pattern, name) for pattern in self._allowed)
