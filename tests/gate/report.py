"""What the gate says at its end: a table of stages, a few lines for each failure, report.json and one JUnit file."""

import json
from pathlib import Path
from xml.etree import ElementTree

from results import Skips, Test
from stages import Done

LINES = 60  # of the end, where anything failed
OUTPUT_LINES = 40  # of one failure's output


def table(done: list[Done], all_seconds: float) -> list[str]:
    lines = [f"{'stage':18} {'time':>7} {'CPU time':>10}"]
    for one in done:
        counts = {verdict: sum(test.verdict == verdict for test in one.tests) for verdict in ("passed", "failed", "skipped", "unstable")}
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        verdict = "passed" if one.passed else "TIME LIMIT" if one.status == 124 else f"FAILED ({one.status})"
        if not one.passed and not one.stage.gates:
            verdict += ", does not gate"
        lines.append(f"{one.stage.name:18} {one.seconds:5.0f} s {one.processor_seconds:8.0f} s  {verdict}{': ' + said if said else ''}")
    lines.append(f"{'in all':18} {all_seconds:5.0f} s {sum(one.processor_seconds for one in done):8.0f} s")
    return lines


def failure(test: Test, seed: int, room: int) -> list[str]:
    output = [line[:200] for line in test.output.splitlines() if line.strip()]
    shown = output[-max(1, min(OUTPUT_LINES, room - 3)) :]
    return [f"FAILED {test.name}", f"  again: {test.repeat}", f"  seed {seed}; the end of its output:", *(f"  | {line}" for line in shown)]


def failures(done: list[Done], skips: Skips, machine: str, seed: int) -> list[str]:
    """At most LINES lines: what failed, how to repeat it, the end of its output, and the state of the machine."""
    tests = [test for one in done if one.stage.gates for test in one.failed]
    unexpected = [test for one in done if one.stage.gates for test in skips.unexpected(one.tests)]
    stages = [one for one in done if one.stage.gates and not one.passed and not one.failed]
    head = [f"UNEXPECTED SKIP {test.name} (not in tests/skips.toml): {' '.join(test.output.split())[-100:]}" for test in unexpected]
    if len(head) > 10:
        head = [*head[:10], f"... and {len(head) - 10} more skips"]
    items = len(tests) + len(stages)
    room = (LINES - 3 - len(head)) // max(1, min(items, 8))
    lines = list(head)
    for one in stages[:8]:
        output = one.log.read_text(errors="replace").splitlines()
        lines += [f"FAILED stage {one.stage.name}, status {one.status}, seed {seed}; again: {' '.join(one.stage.commands[-1])[:300]}"]
        lines += [f"  the end of {one.log}:"]
        lines += [f"  | {line[:200]}" for line in output[-max(1, min(OUTPUT_LINES, room - 2)) :]]
    for test in tests[: max(0, 8 - len(stages))]:
        lines += failure(test, seed, room)
    if items > 8:
        lines.append(f"... and {items - 8} more: build/test-logs/report.json")
    return [*lines, f"machine: {machine}"]


def unstable(done: list[Done]) -> list[str]:
    return [
        f"UNSTABLE {test.name}: passed when repeated alone; put it into tests/quarantine.toml"
        for one in done
        for test in one.tests
        if test.verdict == "unstable"
    ]


def near_their_limit(done: list[Done]) -> list[str]:
    """A limit finds hangs only where it is far from what a test takes."""
    close = [test for one in done for test in one.tests if test.limit and test.seconds * 20 > test.limit and test.verdict == "passed"]
    return [f"note: {test.name} took {test.seconds:.0f} s of a limit of {test.limit:.0f} s (wanted: a twentieth)" for test in close]


def write_json(path: Path, done: list[Done], facts: dict[str, str], seed: int, skips: Skips, verdict: str) -> None:
    path.write_text(
        json.dumps(
            {
                "verdict": verdict,
                "seed": seed,
                "machine": facts,
                "stages": [
                    {
                        "name": one.stage.name,
                        "gates": one.stage.gates,
                        "status": one.status,
                        "seconds": round(one.seconds, 1),
                        "processor_seconds": round(one.processor_seconds, 1),
                        "tests": [
                            {"name": test.name, "verdict": test.verdict, "seconds": test.seconds}
                            | ({"output": test.output, "repeat": test.repeat} if test.verdict in ("failed", "unstable") else {})
                            | ({"expected": skips.allows(test)} if test.verdict == "skipped" else {})
                            for test in one.tests
                        ],
                    }
                    for one in done
                ],
            },
            indent=1,
        )
        + "\n"
    )


def write_junit(path: Path, done: list[Done]) -> None:
    root = ElementTree.Element("testsuites")
    for one in done:
        suite = ElementTree.SubElement(root, "testsuite", name=one.stage.name, time=f"{one.seconds:.1f}", tests=str(max(1, len(one.tests))))
        if not one.tests:
            case = ElementTree.SubElement(suite, "testcase", name=one.stage.name, time=f"{one.seconds:.1f}")
            if not one.passed:
                ElementTree.SubElement(case, "failure", message=f"status {one.status}; {one.log}")
        for test in one.tests:
            case = ElementTree.SubElement(suite, "testcase", name=test.name, time=f"{test.seconds:.3f}")
            if test.verdict == "failed":
                ElementTree.SubElement(case, "failure", message="failed").text = "".join(
                    c for c in test.output if c.isprintable() or c in "\n\t"
                )
            elif test.verdict == "skipped":
                ElementTree.SubElement(case, "skipped")
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
