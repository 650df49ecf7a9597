"""The messages of the guest's kernel: killed processes, its own faults, and its last lines."""

import re

_OOM = re.compile(r"(?:Out of memory|out of memory)[^:]*: Killed process (\d+) \(([^)]*)\)")
_OOPS = re.compile(r"(BUG: .*|kernel BUG at .*|Oops: .*|general protection fault, .*|watchdog: BUG: .*|WARNING: CPU.*)")
_PANIC = re.compile(r"Kernel panic - not syncing: (.*)")
_TIME = re.compile(r"^\[\s*\d+\.\d+\] ?")


def lines(console: bytes) -> list[str]:
    text = console.decode(errors="replace").replace("\r", "")
    return [_TIME.sub("", line) for line in text.splitlines()]


def findings(console: bytes) -> list[str]:
    """One line for each event that users must know."""
    found = []
    for line in lines(console):
        if match := _OOM.search(line):
            found.append(f"the guest ran out of memory and killed process {match[1]} ({match[2]})")
        elif match := _PANIC.search(line):
            found.append(f"the guest's kernel panicked: {match[1]}")
        elif match := _OOPS.match(line):
            found.append(f"the guest's kernel reports: {match[1]}")
    return found


def oom_kills(console: bytes) -> list[str]:
    """Names of the processes that the out-of-memory killer chose."""
    return [match[2] for line in lines(console) if (match := _OOM.search(line))]


def end(console: bytes, count: int = 25) -> str:
    return "\n".join(lines(console)[-count:])
