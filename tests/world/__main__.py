"""python tests/world: real programs under glibc's malloc and under numalloc, and docs/compatibility.md of it."""

import argparse
import os
import re
import signal
import sys
from pathlib import Path

from matrix import events, install, report, run, table

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/world", description=__doc__)
    parser.add_argument("--library", type=Path, default=ROOT / "build/release/libnumalloc.so")
    parser.add_argument("--quick", action="store_true", help="the choice of at most five minutes")
    parser.add_argument("--only", metavar="REGEX", help="rows whose name or family matches")
    parser.add_argument("--packages", action="store_true", help="install the rows' Debian packages, as root, and run nothing")
    parser.add_argument("--no-install", action="store_true", help="only what is installed already")
    parser.add_argument("--cache", type=Path, default=ROOT / "build/world", help="where what is fetched and found is kept")
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write the table of all results that are kept; without --quick and --only it is docs/compatibility.md",
    )
    parser.add_argument("--report-only", action="store_true", help="run nothing, write the table")
    parser.add_argument("--list", action="store_true", help="the rows that would run")
    options = parser.parse_args()

    everything = table.rows()
    rows = [row for row in everything if row.quick or not options.quick]
    if options.only:
        try:
            rows = [row for row in rows if any(re.search(options.only, word, re.I) for word in (row.name, row.family))]
        except re.error as wrong:
            parser.error(f"--only {options.only}: {wrong}")
    if not rows:
        parser.error(f"--only {options.only}: no row's name or family matches; --list without it shows them")
    if options.list:
        print("\n".join(f"{row.family}: {row.name}" for row in rows))
        return 0
    if options.packages:
        return packages(rows, options.cache)
    if not options.report_only and not options.library.is_file():
        parser.error(f"{options.library} is missing; build it with cmake --preset release && cmake --build --preset release")
    os.nice(10)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended on this way out, too
    # The quick choice has results of its own: they are no part of the document.
    keep = options.cache.resolve() / ("quick.json" if options.quick else "results.json")
    found = []
    if not options.report_only:
        runner = run.Runner(options.library.resolve(), options.cache.resolve(), not options.no_install, run.commit_of(ROOT))
        print(f"{len(rows)} programs; signals by {runner.watch}", flush=True)
        try:
            found = run.run_all(runner, rows, say, keep)
        finally:
            runner.close()
    part = options.quick or options.only
    if target := options.report or (None if part and not options.report_only else ROOT / "docs/compatibility.md"):
        target.write_text(report.markdown(everything, run.load(keep), events.best()))
        print(f"written: {target}")
    return finish(found)


def packages(rows: list[table.Row], cache: Path) -> int:
    """By itself where the rows then run without root. What cannot be had is said when its row is to run."""
    if os.geteuid() != 0:
        sys.exit("tests/world --packages: needs root")
    missing = install.Installer(cache, True).packages(rows)
    print(f"not to be had: {', '.join(missing)}" if missing else "all packages are installed")
    return 0


def say(result: run.Result) -> None:
    reasons = "; ".join([*result.faults, *result.remarks])
    print(f"{result.verdict:16} {result.seconds:5.0f} s  {result.name}{': ' + reasons if reasons else ''}", flush=True)


def finish(found: list[run.Result]) -> int:
    failed = [result.name for result in found if result.failed()]
    absent = sum(not result.passed() and not result.failed() for result in found)
    if failed:
        print(f"failed: {', '.join(failed)}")
    print(f"{sum(result.passed() for result in found)} passed, {len(failed)} failed" + (f", {absent} not tried" if absent else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
