"""backtrace.py LIBRARY PROGRAM CASE=WHAT...: NUMALLOC_BACKTRACE=1 leaves the line of a misuse unchanged and adds the
stack of the call WHAT, whose first frame is in the program."""

import os
import re
import signal
import subprocess
import sys

ADDRESS = "0x[0-9a-f]+"
FRAME = re.compile(rf"numalloc:     #(\d+) {ADDRESS}(?: (/.+)\+{ADDRESS})?$")


def lines_of(library: str, program: str, case: str, option: str) -> list[str]:
    without = {key: value for key, value in os.environ.items() if not key.startswith("NUMALLOC_")}
    env = without | {"LD_PRELOAD": library, "NUMALLOC_BACKTRACE": option}
    done = subprocess.run([program, case], env=env, capture_output=True, text=True, timeout=60)
    if done.returncode != -signal.SIGABRT or not done.stderr:
        sys.exit(f"{case}: status {done.returncode}, {done.stderr!r}")
    return done.stderr.splitlines()


def fault_of(library: str, program: str, case: str, what: str) -> str | None:
    plain = lines_of(library, program, case, "0")
    if len(plain) != 1:
        return f"{len(plain)} lines without the option"
    first, *stack = lines_of(library, program, case, "1")
    if re.sub(ADDRESS, "", first) != re.sub(ADDRESS, "", plain[0]):
        return f"another line: {first!r} instead of {plain[0]!r}"
    if not stack or not re.fullmatch(rf"numalloc:   {re.escape(what)} by thread \d+:", stack[0]):
        return f"no stack of {what!r}: {stack[:1]}"
    frames = [FRAME.match(line) for line in stack[1:]]
    if not frames or [frame and int(frame[1]) for frame in frames] != list(range(len(frames))):
        return f"frames are missing or out of order: {stack[1:]}"
    if [frame and frame[2] for frame in frames[:1]] != [os.path.realpath(program)]:
        return f"the first frame is not the program's: {stack[1]}"
    return None


def main() -> None:
    library, program, *cases = sys.argv[1:]
    results = {case: fault_of(library, program, case, what) for case, _, what in (word.partition("=") for word in cases)}
    faults = [f"{case}: {fault}" for case, fault in results.items() if fault]
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(cases)} misuses with the program's stack")


if __name__ == "__main__":
    main()
