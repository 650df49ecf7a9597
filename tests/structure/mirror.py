#!/usr/bin/env python3
"""The unit tests' folders are those of src/.

    mirror.py PROJECT           exit status 1, and a line for every fault

The test tests/unit/FOLDER/X_test.cpp needs a folder src/FOLDER. If src/ has a file X.h or X.cpp, FOLDER is that file's folder.
Fixtures, whose names do not end in _test.cpp, may be anywhere.
"""

import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from check import finish

FEWEST_TESTS = 30


def faults_of_tests(tests: Iterable[str], sources: Iterable[str]) -> list[str]:
    """`tests`: paths from tests/unit/; `sources`: paths from src/."""
    faults = []
    files = [PurePosixPath(source) for source in sources]
    folders = {folder for file in files for folder in file.parents} - {PurePosixPath()}
    for test in map(PurePosixPath, tests):
        tested = test.name.removesuffix("_test.cpp")
        homes = sorted({str(file.parent) for file in files if file.stem == tested})
        if homes and str(test.parent) not in homes:
            faults.append(f"tests/unit/{test}: src has {tested} in {' and in '.join(homes)}, so the test belongs there")
        elif test.parent not in folders:
            faults.append(f"tests/unit/{test}: no folder of src has the path {test.parent}")
    return faults


def main() -> None:
    project = Path(sys.argv[1])
    source, unit = project / "src", project / "tests/unit"
    tests = [p.relative_to(unit).as_posix() for p in sorted(unit.rglob("*_test.cpp"))]
    faults = faults_of_tests(tests, [p.relative_to(source).as_posix() for p in source.rglob("*") if p.suffix in {".h", ".cpp"}])
    if len(tests) < FEWEST_TESTS:
        faults.append(f"tests/unit: only {len(tests)} tests: they are not where this test looks")
    finish(faults, f"{len(tests)} unit tests: each is in the folder of what it tests")


if __name__ == "__main__":
    main()
