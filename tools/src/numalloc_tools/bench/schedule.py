"""The order of runs: round by round, program by program; each round begins with another allocator."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from numalloc_tools.allocators import Allocator
from numalloc_tools.bench.results import OK, Run
from numalloc_tools.programs import LIMIT, PAPER_LIMIT, Case, Work

_FIRST_GUESS = 2.0  # seconds, for a run without an estimate
_OVERHEAD = 0.05  # seconds per run to start and inspect it
_RESERVE = 5.0  # seconds of a budget reserved for the work after the runs
_TIME_IS_OVER = "the time of --quick or --minutes was used up"


@dataclass(frozen=True)
class Plan:
    cases: list[Case]
    allocators: list[Allocator]
    rounds: int  # measured rounds; with a budget, at most
    scale: float = 1.0
    seed: int = 1
    deadline: float | None = None  # on time.monotonic()
    limit: float | None = None  # seconds for a run
    paper: bool = False  # with the sizes of --paper


class Schedule:
    """Iterates over runs as they end. Round 0 warms up, takes more figures, and gives the estimate for the rest."""

    def __init__(self, plan: Plan, announce: Callable[[Case, Allocator, int], None] = lambda *_: None):
        self.plan = plan
        self.cells = len(plan.cases) * len(plan.allocators)
        self.total = self.cells * (plan.rounds + 1)
        self.done = 0
        self.stopped_early = False  # the budget was too short for all rounds
        self._announce = announce
        self._took: dict[tuple[str, str], float] = {}  # runs and their durations
        self._failed: set[tuple[str, str]] = set()

    def round_seconds(self) -> float:
        return sum(self._took.values()) + _OVERHEAD * len(self._took)

    def left(self) -> float:
        """Seconds, by estimate."""
        rounds, within = divmod(self.done, self.cells) if self.cells else (0, 0)
        this_round = list(self._order(rounds))[within:] if rounds <= self.plan.rounds else []
        later = self.plan.rounds - rounds
        estimate = sum(map(self._guess, this_round)) + later * sum(map(self._guess, self._order(0)))
        return max(0.0, estimate if self.plan.deadline is None else min(estimate, self._budget()))

    def _guess(self, cell: tuple[Case, Allocator]) -> float:
        """Its own duration, or the program's under other allocators, or a typical one."""
        case, allocator = cell
        key = (case.name, allocator.name)
        if key in self._failed or case.program.missing or allocator.missing:
            return 0.0
        if key not in self._took:
            like = [took for (name, _), took in self._took.items() if name == case.name] or list(self._took.values())
            return _OVERHEAD + (sum(like) / len(like) if like else _FIRST_GUESS * self.plan.scale)
        return _OVERHEAD + self._took[key]

    def _order(self, number: int) -> Iterator[tuple[Case, Allocator]]:
        allocators = self.plan.allocators
        for case in self.plan.cases:
            for place in range(len(allocators)):
                yield case, allocators[(place + number) % len(allocators)]

    def _budget(self) -> float:
        return float("inf") if self.plan.deadline is None else self.plan.deadline - _RESERVE - time.monotonic()

    def __iter__(self) -> Iterator[Run]:
        for number in range(self.plan.rounds + 1):
            # Only whole rounds: half a round would compare some pairs more often than others.
            if number > 0 and self.round_seconds() > self._budget():
                self.stopped_early = True
                return
            for case, allocator in self._order(number):
                if (case.name, allocator.name) not in self._failed:
                    yield self._run(case, allocator, number)
                self.done += 1

    def _run(self, case: Case, allocator: Allocator, number: int) -> Run:
        key = (case.name, allocator.name)
        self._announce(case, allocator, number)

        def row(status: str, reason: str, figures: dict[str, float]) -> Run:
            if status != OK:
                self._failed.add(key)  # it would fail again
                self._took.pop(key, None)
            return Run(case.program.name, case.threads, allocator.name, number, status, reason, figures)

        if reason := case.program.missing or allocator.missing:
            return row("missing", reason, {})
        budget = self._budget()
        limit = self.plan.limit or (PAPER_LIMIT if self.plan.paper else LIMIT) * max(1.0, self.plan.scale)
        if budget <= 0:
            return row("left out", _TIME_IS_OVER, {})
        begun = time.monotonic()
        work = Work(case.threads, self.plan.scale, self.plan.seed, min(limit, budget), self.plan.paper, sample=number == 0)
        ended = case.program.run(allocator, work)
        self._took[key] = time.monotonic() - begun
        if ended.status == "timeout" and budget < limit:
            return row("left out", _TIME_IS_OVER, {})
        return row(ended.status, ended.reason, ended.figures)
