"""Switches of the whole machine that a row needs for a moment, put back whatever becomes of it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_LOCK = Path("/tmp/numalloc-overcommit.lock")  # shared with the other tests that change such switches


class Refused(Exception):
    pass


@contextmanager
def changed(wanted: dict[str, str]) -> Iterator[None]:
    """`wanted`: names as sysctl has them. They are set in order, and put back in the opposite order."""
    with ExitStack() as stack:
        if wanted and os.geteuid() != 0:
            raise Refused(f"needs root to set {', '.join(wanted)}")
        if wanted:
            lock = stack.enter_context(_LOCK.open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        for name, value in wanted.items():
            path = Path("/proc/sys", *name.split("."))
            try:
                before = path.read_text().strip()
                path.write_text(value)
            except OSError as error:
                raise Refused(f"{name} cannot be set here: {error.strerror}") from None
            stack.callback(path.write_text, before)
        yield
