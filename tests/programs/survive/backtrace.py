"""backtrace.py LIBRARY PROGRAM CASE=WHO...: with NUMALLOC_BACKTRACE=1 the line that the misuse program dies with stays as it is, and
the stack of WHO follows, which begins in the program; in a case that ends with +, the program comes somewhere in it."""

import os
import re
import signal
import subprocess
import sys

ADDRESS = "0x[0-9a-f]+"
FRAME = re.compile(rf"numalloc:     #(\d+) {ADDRESS}(?: (/.+)\+{ADDRESS})?$")


def said(library: str, program: str, case: str, backtrace: str) -> list[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("NUMALLOC_")}
    env = kept | {"LD_PRELOAD": library, "NUMALLOC_BACKTRACE": backtrace}
    done = subprocess.run([program, case], env=env, capture_output=True, text=True, timeout=60)
    if done.returncode != -signal.SIGABRT or not done.stderr:
        sys.exit(f"{case}: status {done.returncode}, {done.stderr!r}")
    return done.stderr.splitlines()


def without_addresses(line: str) -> str:
    return re.sub(ADDRESS, "ADDRESS", line)


def fault_of(library: str, program: str, case: str, who: str) -> str | None:
    case, anywhere = case.rstrip("+"), case.endswith("+")
    alone = said(library, program, case, "0")
    if len(alone) != 1:
        return f"{len(alone)} lines without a backtrace"
    first, *stack = said(library, program, case, "1")
    if without_addresses(first) != without_addresses(alone[0]):
        return f"another line: {first!r} for {alone[0]!r}"
    if not stack or not re.fullmatch(rf"numalloc:   {re.escape(who)} by thread \d+:", stack[0]):
        return f"the stack is not headed by {who!r}: {stack[:1]}"
    frames = [FRAME.match(line) for line in stack[1:]]
    if not frames or not all(frames) or [int(frame[1]) for frame in frames if frame] != list(range(len(frames))):
        return f"no frames in order: {stack[1:]}"
    files = [frame[2] for frame in frames if frame]
    if os.path.realpath(program) not in (files if anywhere else files[:1]):
        return f"the program is not in it: {files}"
    return None


def main() -> None:
    library, program, *cases = sys.argv[1:]
    faults = [
        f"{case}: {fault}" for case, _, who in (word.partition("=") for word in cases) if (fault := fault_of(library, program, case, who))
    ]
    if faults:
        sys.exit("\n".join(faults))
    print(f"{len(cases)} lines with the program's stack behind them")


if __name__ == "__main__":
    main()
