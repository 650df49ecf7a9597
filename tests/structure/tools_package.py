#!/usr/bin/env python3
"""The Debian package numalloc-tools: what it needs, what is in it, and that the command runs from where it is unpacked.

    tools_package.py BUILD_DIRECTORY      exit status 77 without dpkg-deb or Debian's Python packages

pip fetches what is bundled. The system's Python runs the command, with Debian's packages beside it.
"""

import re
import sys
import tempfile
from pathlib import Path

from check import finish, run
from packages import made_twice

NEEDED = (
    "libnumalloc0 (= ",
    "python3 (>= 3.11)",
    "python3-click",
    "python3-matplotlib",
    "python3-numpy",
    "python3-pyelftools",
    "python3-rich",
    "python3-scipy",
    "python3-tomli-w",
)
PYTHON = "/usr/bin/python3"
BUNDLED = ("google", "prometheus_client", "typer")


def check_fields(package: Path) -> list[str]:
    told = {name: run("dpkg-deb", "--field", package, name).strip() for name in ("Architecture", "Depends", "Suggests")}
    faults = [] if told["Architecture"] == "all" else [f"numalloc-tools is for {told['Architecture']}"]
    faults += [f"numalloc-tools does not need {name}" for name in NEEDED if name not in told["Depends"]]
    return faults + ([] if "qemu-system-x86" in told["Suggests"] else ["numalloc-tools does not suggest the emulator"])


def check_files(root: Path) -> list[str]:
    held = [path.relative_to(root) for path in root.rglob("*") if not path.is_dir() or path.is_symlink()]
    faults = [f"{path}: a link, which leads out of the package" for path in held if (root / path).is_symlink()]
    faults += [
        f"{path}: no place of ours" for path in held if not re.match(r"usr/(bin/numalloc$|lib/numalloc/|share/(man|doc)/)", str(path))
    ]
    faults += [f"{path}: is written where the package is installed" for path in held if path.suffix == ".pyc"]
    folder = root / "usr/lib/numalloc"
    faults += [f"lacks {name}" for name in (*BUNDLED, "numalloc_tools/tables/options.def") if not (folder / name).exists()]
    return faults + ([] if list(root.glob("usr/share/man/man1/numalloc-run.1.gz")) else ["lacks the manual page of numalloc run"])


def check_command(root: Path) -> list[str]:
    """As /usr/bin/numalloc has it, with the folder where it is unpacked."""
    folder = str(root / "usr/lib/numalloc")
    command = root / "command"
    command.write_text((root / "usr/bin/numalloc").read_text().replace("/usr/lib/numalloc", folder))
    faults = []
    for words, wanted in (["--version"], r"\d+\.\d+"), (["topology"], "node"), (["run", "--threads", "sparse", "--", "echo", "ran"], "ran"):
        told = run(PYTHON, "-B", command, *words)
        faults += [] if re.search(wanted, told) else [f"numalloc {' '.join(words)} said {told!r}"]
    asks = f"import sys; sys.path.insert(0, {folder!r}); import numalloc_tools, typer; print(numalloc_tools.__file__, typer.__file__)"
    told = run(PYTHON, "-B", "-c", asks)
    return faults + ([] if told.count(folder) == 2 else [f"other files were taken than the package's: {told}"])


def main() -> None:
    build = sys.argv[1]
    try:
        run("dpkg-deb", "--version")
        run(PYTHON, "-c", "import tomllib, click, elftools, rich, shellingham, tomli_w")
    except (SystemExit, OSError) as reason:
        print(reason)
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="numalloc-tools-package-") as folder:
        work = Path(folder)
        packages, faults = made_twice(build, work, "DEB", "-D", "CPACK_COMPONENTS_ALL=tools")
        found = list(packages.glob("*.deb"))
        if [path.name.split("_")[0] for path in found] != ["numalloc-tools"]:
            finish([*faults, f"cpack made {[path.name for path in found]}"], "")
        root = work / "root"
        run("dpkg-deb", "-x", found[0], root)
        faults += check_fields(found[0]) + check_files(root) + check_command(root)
    finish(faults, "numalloc-tools, the same bytes twice; the command runs")


if __name__ == "__main__":
    main()
