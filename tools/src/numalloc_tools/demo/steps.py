"""How far a run is: a bar on a terminal, and elsewhere a line at least every ten seconds."""

import threading
import time
from types import TracebackType

from rich.console import Console
from rich.text import Text

from numalloc_tools.progress import bar_on, clock

SILENCE = 9.0  # seconds without a line; one more is room for a busy machine


class Steps:
    def __init__(self, terminal: Console, total: int, doing: str):
        self._terminal = terminal
        self._has_bar = terminal.is_terminal and not terminal.is_dumb_terminal
        self._bar = bar_on(terminal)
        self._task = self._bar.add_task(doing, total=total)
        self._doing = doing
        self._begun = time.monotonic()
        self._ended = False
        self._spoke = threading.Event()
        self._watch = threading.Thread(target=self._say_what_takes_long, daemon=True)

    def __enter__(self) -> "Steps":
        if self._has_bar:
            self._bar.start()
        else:
            self._watch.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._has_bar:
            self._bar.stop()
        else:
            self._ended = True
            self._spoke.set()
            self._watch.join()

    def begin(self, doing: str) -> None:
        self._doing = doing
        self._bar.update(self._task, description=doing)

    def end(self) -> None:
        self._bar.advance(self._task)

    def print(self, line: str | Text) -> None:
        self._terminal.print(line, markup=False, highlight=False, soft_wrap=True)
        self._spoke.set()

    def print_without_bar(self, line: str) -> None:
        if not self._has_bar:
            self.print(line)

    def _say_what_takes_long(self) -> None:
        while not self._ended:
            if self._spoke.wait(SILENCE):
                self._spoke.clear()
            else:
                self._terminal.print(f"  {clock(time.monotonic() - self._begun)}  {self._doing}", markup=False, highlight=False)
