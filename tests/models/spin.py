#!/usr/bin/env python3
"""spin.py MODEL: what threads do between each other, in every order of their steps.

MODEL is a file of this folder without its ending. Each `#ifdef NAME` in it is a fault made for it: spin must find that one.
Status 77 where spin is not installed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MODELS = Path(__file__).parent


def checked(model: Path, faults: list[str]) -> tuple[int, int]:
    """Errors and states: 0 errors mean that all orders were tried."""
    with tempfile.TemporaryDirectory(prefix="numalloc-spin-") as work:
        for command in (
            ["spin", "-a", *(f"-D{fault}" for fault in faults), model],
            ["cc", "-O1", "-DSAFETY", "-o", "pan", "pan.c"],
            ["./pan", "-m1000000"],
        ):
            done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=100)
            if done.returncode != 0:
                sys.exit(f"{command[0]}: exit status {done.returncode}: {done.stdout}{done.stderr}")
    if ("Search not completed" in done.stdout or "max search depth too small" in done.stdout) and not faults:
        sys.exit(f"{model.name}: not all orders were tried:\n{done.stdout}")
    return int(re.search(r"errors: (\d+)", done.stdout)[1]), int(re.search(r"(\d+) states, stored", done.stdout)[1])


def main(name: str) -> None:
    if shutil.which("spin") is None:
        print("spin is not installed")
        sys.exit(77)
    model = MODELS / f"{name}.pml"
    errors, states = checked(model, [])
    if errors:
        sys.exit(f"{name}: spin found an order of steps in which the model fails")
    faults = sorted(set(re.findall(r"^#ifn?def (\w+)", model.read_text(), re.M)))
    missed = [fault for fault in faults if checked(model, [fault])[0] == 0]
    if missed or not faults:
        sys.exit(f"{name}: faults that spin does not find: {', '.join(missed) or 'none was made'}")
    print(f"{name}: right in all orders, {states:,} states; found: {', '.join(faults)}")


main(sys.argv[1])
