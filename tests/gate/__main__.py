"""python tests/gate [--full]: builds and tests, in stages. All run even where one fails; the end is a table of them.

Status 0: all that gates passed. 1: the project failed. 2: the machine did (no disk). `sh scripts/test.sh` calls it with the
packages installed."""

import argparse
import errno
import shutil
import signal
import sys
import time

import report
import stages
from plan import Stage, gate, rest
from results import Skips, quarantined
from surroundings import ROOT, SEED, Machine, disk_wanted, folder_for_programs, inherit_nothing, made

THE_PROJECT_FAILED, THE_MACHINE_FAILED = 1, 2
LOGS = ROOT / "build/test-logs"
NO_DISK = 64 << 20  # bytes; less at the end, and what failed failed for that


def say(line: str) -> None:
    print(line, flush=True)


def run_all(plan: list[Stage], around, full: bool) -> list[stages.Done]:
    done = []
    for number, stage in enumerate(plan, 1):
        say(f"== {number} of {len(plan)}: {stage.name}")
        done.append(stages.run(stage, around, LOGS, full, say))
        say(report.table(done[-1:], 0)[1])
    return done


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/gate", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the gate, then everything else, with a fresh seed")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    inherited = inherit_nothing()
    stages.adopt_orphans()
    for number in (signal.SIGTERM, signal.SIGHUP):  # what is running ends too, and folders go
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    shutil.rmtree(LOGS, ignore_errors=True)
    LOGS.mkdir(parents=True)
    if (free := shutil.disk_usage(ROOT).free) < (wanted := disk_wanted()):
        say(f"the disk of {ROOT} has {free >> 20} MiB free; the builds and tests take {wanted >> 20} MiB more")
        return THE_MACHINE_FAILED
    seed = int(time.time()) if arguments.full else SEED
    machine, begun = Machine(inherited), time.monotonic()
    kept_back = quarantined(ROOT / "tests")
    with made(seed) as around:
        skips = Skips(ROOT / "tests", around.conditions())
        cut = "cut" if around.can_cut else "closed to HTTP only: no right to a network namespace"
        say(f"seed {seed}; the network is {cut}; {machine.line()}")
        done = run_all(gate(kept_back), around, False)
        if arguments.full:
            done += run_all(rest(kept_back), around, True)
    gating = [one for one in done if one.stage.gates]
    unexpected = [test for one in gating for test in skips.unexpected(one.tests)]
    passed = all(one.passed for one in gating) and not unexpected
    report.write_json(LOGS / "report.json", done, machine.facts(), seed, skips, "passed" if passed else "failed")
    report.write_junit(LOGS / "junit.xml", done)
    say("")
    for line in [*report.table(done, time.monotonic() - begun), *report.near_their_limit(gating), *report.unstable(done)]:
        say(line)
    if not passed:
        say("")
        for line in report.failures(done, skips, machine.line(), seed):
            say(line)
    tests = [test for one in gating for test in one.tests]
    failed = sum(test.verdict == "failed" for test in tests) + len(unexpected) + sum(not one.passed and not one.failed for one in gating)
    skipped = sum(test.verdict == "skipped" for test in tests)
    say(f"tests: {sum(test.verdict in ('passed', 'unstable') for test in tests)} passed, {failed} failed, {skipped} skipped")
    if passed:
        return 0
    disks = (ROOT, folder_for_programs())
    return THE_MACHINE_FAILED if min(shutil.disk_usage(folder).free for folder in disks) < NO_DISK else THE_PROJECT_FAILED


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise
        print(f"{error.filename or LOGS}: {error.strerror}", file=sys.stderr)
        sys.exit(THE_MACHINE_FAILED)
