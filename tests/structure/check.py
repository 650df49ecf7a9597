"""What the structure tests have in common: faults as lines, golden files, and running tools."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
GOLDEN = HERE / "golden"


def run(*command: str | Path) -> str:
    """The tool's output; a failing tool ends the test with its own words."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def golden_lines(name: str) -> list[str]:
    lines = (GOLDEN / name).read_text().splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def differences(what: str, got: list[str], expected: list[str]) -> list[str]:
    """A line for each that is missing or new; order does not count."""
    return [f"{what}: missing: {line}" for line in expected if line not in got] + [
        f"{what}: new: {line}" for line in got if line not in expected
    ]


def finish(faults: list[str], fine: str) -> None:
    print("\n".join(faults) or fine)
    sys.exit(1 if faults else 0)
