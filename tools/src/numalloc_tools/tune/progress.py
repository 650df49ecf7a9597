"""The progress of the search: a bar on a terminal, otherwise lines."""

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from numalloc_tools.progress import clock
from numalloc_tools.tune.records import CONFIRMATION, WARM_UP, Request
from numalloc_tools.tune.search import Search
from numalloc_tools.tune.wording import named


class Shown:
    """Draws only when called: a drawing thread could hold a lock during a fork."""

    def __init__(self, console: Console, search: Search):
        self._console, self._search = console, search
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
            auto_refresh=False,
        )
        self._task = self._bar.add_task("", total=None, left="")
        self._block = 0
        self._gone: set = set()

    def __enter__(self) -> "Shown":
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def running(self, request: Request) -> None:
        budget = self._search.budget
        left, each = budget.left(), budget.spent / budget.done if budget.done else 0.0
        most = f"{left} runs, {clock(left * each)} left at most" if each else ""
        if self._console.is_terminal:
            self._bar.update(
                self._task,
                completed=budget.done,
                total=budget.done + left,
                left=most,
                description=f"{self._place(request)}: {named(request.setting)}",
            )
            self._bar.refresh()
        elif request.block != self._block:
            self.say(f"{self._place(request)}; {most}" if most else self._place(request))
        self._block = request.block

    def ended(self) -> None:
        """Names the settings that were dropped since the last call."""
        for setting, reason in self._search.fallen.items():
            if setting not in self._gone:
                self.say(f"{named(setting)} is dropped: {reason}")
        for setting, blocks in self._search.beaten.items():
            if setting not in self._gone:
                self.say(f"{named(setting)} is behind after {blocks} blocks")
        self._gone.update(self._search.fallen, self._search.beaten)

    def say(self, text: str) -> None:
        console = self._bar.console if self._console.is_terminal else self._console
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _place(self, request: Request) -> str:
        if request.phase == WARM_UP:
            return "warm-up"
        if request.phase == CONFIRMATION:
            return f"new runs, block {request.block - self._first(request)}"
        return f"{request.stage}, block {request.block - self._first(request)}"

    def _first(self, request: Request) -> int:
        """The number of the last block before this stage."""
        stages = self._search.stage_begins
        return stages.get((request.phase, request.stage), request.block) - 1
