"""A pseudo-terminal with a program in it that takes it for its own, as in a window of a desk."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from limits import LIMIT

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\r")
ENTERED, LEFT = "\x1b[?1049h", "\x1b[?1049l"  # the screen that a program has for itself
HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"  # the cursor


class Terminal:
    def __init__(self, command: list[str], rows: int = 30, columns: int = 130, **environment: str):
        self._master, slave = pty.openpty()
        self.resize(rows, columns)
        self._file = slave  # kept open, so that its settings can be asked for when the program has gone
        self.before = termios.tcgetattr(slave)
        self.said = ""

        def take_the_terminal() -> None:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            command,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=take_the_terminal,
            # Not the size that the tests' own runner has told everybody.
            env={name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
            | {"TERM": "xterm-256color"}
            | environment,
        )

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def read(self, seconds: float = 0.0) -> str:
        """All that it has said so far; waits so long for more."""
        deadline = time.monotonic() + seconds
        while True:
            ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return self.said
            self.said += os.read(self._master, 65536).decode(errors="replace")

    def wait_for(self, text: str, seconds: float = 20.0, after: int = 0) -> int:
        """Where the text, without what controls the terminal, ends in what was said from `after` on."""
        deadline = time.monotonic() + seconds
        while text not in plain(self.said[after:]) and text not in self.said[after:]:
            assert time.monotonic() < deadline, f"'{text}' never came; it said: {plain(self.said[after:])[-2000:]}"
            self.read(0.05)
        return len(self.said)

    def ended(self, seconds: float = 20.0) -> int:
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "it does not end"
            self.read(0.05)
        self.read(0.05)
        return self.process.returncode

    @property
    def in_order(self) -> bool:
        """Settings, screen and cursor are as they were found."""
        same = termios.tcgetattr(self._file) == self.before
        return same and self.said.rfind(LEFT) >= self.said.rfind(ENTERED) and self.said.rfind(SHOWN) >= self.said.rfind(HIDDEN)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=LIMIT)
        os.close(self._master)
        os.close(self._file)


def plain(text: str) -> str:
    return _CONTROL.sub("", text)
