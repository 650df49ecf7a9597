#!/usr/bin/env python3
"""Every file of C and C++ is as clang-format leaves it, by the settings of .clang-format, and has no longer lines.

    format.py PROJECT           exit status 77 where .venv has no clang-format

It comes with the tools' test extra: .venv/bin/pip install -e 'tools[test]'. Another version formats otherwise.
"""

import subprocess
import sys
from pathlib import Path

from check import finish

FOLDERS = ("bench", "examples", "include", "research", "src", "tests", "tools")
FORMATTED = {".c", ".h", ".hpp", ".cpp"}
TABLES = {".def"}  # rows of macros, broken by hand
COLUMNS = 120


def main() -> None:
    project = Path(sys.argv[1]).resolve()
    program = project / ".venv/bin/clang-format"
    files = sorted(f for folder in FOLDERS for f in (project / folder).rglob("*") if f.suffix in FORMATTED | TABLES)
    faults = [
        f"{file.relative_to(project)}:{number}: {len(line)} columns; at most {COLUMNS}"
        for file in files
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if len(line) > COLUMNS
    ]
    if not program.is_file():
        if faults:
            finish(faults, "")
        print("no clang-format in .venv; .venv/bin/pip install -e 'tools[test]' brings it")
        sys.exit(77)
    sources = [file for file in files if file.suffix in FORMATTED]
    done = subprocess.run([program, "--dry-run", "--Werror", *sources], capture_output=True, text=True)
    if done.returncode:
        faults.append(f"{done.stderr}mended by: .venv/bin/clang-format -i FILE")
    finish(faults, f"{len(files)} files are formatted")


if __name__ == "__main__":
    main()
