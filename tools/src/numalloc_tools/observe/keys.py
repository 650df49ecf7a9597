"""Reads single keys from a terminal, and restores its settings at the end."""

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

QUIT = "q"
SUSPEND = "\x1a"  # Ctrl-Z arrives as a key, so that the screen can be restored first


class Wait(Protocol):
    def __call__(self, seconds: float) -> str:
        """The key that was pressed within the time, or an empty text."""


@contextmanager
def keys() -> Iterator[Wait]:
    file = sys.stdin.fileno() if sys.stdin.isatty() else None
    if file is None:
        yield _no_key
        return
    found = termios.tcgetattr(file)
    try:
        tty.setcbreak(file, termios.TCSANOW)
        mode = termios.tcgetattr(file)
        mode[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(file, termios.TCSANOW, mode)
        yield lambda seconds: _pressed(file, seconds)
    finally:
        termios.tcsetattr(file, termios.TCSANOW, found)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """A signal that ends the process unwinds it first, so that the terminal is restored."""

    def end(number: int, _frame) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _pressed(file: int, seconds: float) -> str:
    ready, _, _ = select.select([file], [], [], seconds)
    if not ready:
        return ""
    pressed = os.read(file, 64).decode(errors="replace")
    if not pressed:  # the terminal is gone
        raise SystemExit(128 + signal.SIGHUP)
    return pressed


def _no_key(seconds: float) -> str:
    time.sleep(seconds)
    return ""
