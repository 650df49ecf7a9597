#!/usr/bin/env python3
"""ruff and mypy find nothing in the Python sources, which are as ruff formats them, by the settings of tools/pyproject.toml.

    python.py PROJECT           exit status 77 where .venv lacks one, and the other finds nothing

Both come with the tools' test extra: .venv/bin/pip install -e 'tools[test]'.
"""

import subprocess
import sys
from pathlib import Path

from check import finish


def main() -> None:
    project = Path(sys.argv[1]).resolve()
    programs = project / ".venv/bin"
    by_ruff = ["--quiet", "--config", "tools/pyproject.toml", "."]
    commands = {
        "ruff": [(["check", "--output-format", "concise", *by_ruff], project), (["format", "--check", *by_ruff], project)],
        "mypy": [(["--no-error-summary"], project / "tools")],
    }
    faults, missing = [], [name for name in commands if not (programs / name).is_file()]
    for name in commands.keys() - set(missing):
        for words, folder in commands[name]:
            done = subprocess.run([str(programs / name), *words], cwd=folder, capture_output=True, text=True)
            if done.returncode:
                faults.append(f"{name} {words[0]} in {folder.name}:\n{done.stdout}{done.stderr}".rstrip())
    if missing and not faults:
        print(f"no {' and no '.join(missing)} in .venv; .venv/bin/pip install -e 'tools[test]' brings both")
        sys.exit(77)
    finish(faults, "ruff and mypy: nothing found")


if __name__ == "__main__":
    main()
