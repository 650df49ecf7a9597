#!/usr/bin/env python3
"""The library's sources are as clang-format leaves them, by the settings of .clang-format.

    format.py PROJECT           exit status 77 where .venv has no clang-format

It comes with the tools' test extra: .venv/bin/pip install -e 'tools[test]'. Another version formats otherwise.
"""

import subprocess
import sys
from pathlib import Path

from check import finish

FILES = ("*.h", "*.hpp", "*.cpp")


def main() -> None:
    project = Path(sys.argv[1]).resolve()
    program = project / ".venv/bin/clang-format"
    if not program.is_file():
        print("no clang-format in .venv; .venv/bin/pip install -e 'tools[test]' brings it")
        sys.exit(77)
    files = sorted(file for folder in ("src", "include") for kind in FILES for file in (project / folder).rglob(kind))
    done = subprocess.run([program, "--dry-run", "--Werror", *files], capture_output=True, text=True)
    faults = []
    if done.returncode:
        faults.append(f"{done.stderr}mended by: .venv/bin/clang-format -i $(git ls-files src/*.h src/*.cpp include/*.h include/*.hpp)")
    finish(faults, f"{len(files)} files are formatted")


if __name__ == "__main__":
    main()
