"""Answers the search's requests: from the journal if it has the run, otherwise by running the program."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalloc_tools.launch import Launch, Setting, prepared
from numalloc_tools.problem import Problem
from numalloc_tools.processes import own_command
from numalloc_tools.progress import clock
from numalloc_tools.tune import tree
from numalloc_tools.tune.journal import Journal
from numalloc_tools.tune.measure import Program, Run
from numalloc_tools.tune.placed import HERE, placed
from numalloc_tools.tune.progress import Shown
from numalloc_tools.tune.records import WARM_UP, Answer, Request
from numalloc_tools.tune.search import BaselineFailed, Search
from numalloc_tools.tune.wording import named

FAILED = 1  # exit status
_LIMIT, _LEAST_LIMIT = 10, 10.0  # a run may take 10 times as long as the first, and always 10 seconds
_NOTHING = Launch({})


class Launches:
    """How each setting is started, and which settings this machine cannot run or has already."""

    def __init__(self, command: list[str], environment: Mapping[str, str]):
        self._command, self._environment = command, environment
        self._elsewhere = HERE in command
        self._known: dict[Setting, Launch] = {}
        self._first: dict[tuple, Setting] = {}

    def refused(self, setting: Setting) -> str:
        """The reason why a setting is not tried."""
        if self._elsewhere:
            return ""  # this machine does not know what the other one can do
        try:
            launch = self._launch(setting)
        except Problem as reason:
            return str(reason)
        key = (tuple(sorted(launch.environment.items(), key=str)), launch.calls)
        first = self._first.setdefault(key, setting)
        return "" if first == setting else f"the same as {named(first)}"

    def command(self, setting: Setting) -> tuple[Launch, list[str]]:
        if not self._elsewhere:
            return self._launch(setting), self._command
        return _NOTHING, placed([*own_command(), "run", *setting.flags(), "--"], self._command)

    def _launch(self, setting: Setting) -> Launch:
        if setting not in self._known:
            self._known[setting] = prepared(setting, self._environment)
        return self._known[setting]


@dataclass
class Tuning:
    program: Program
    search: Search
    journal: Journal
    launches: Launches
    runs: dict[Setting, dict[int, Run]] = field(default_factory=dict)  # measured runs, by block

    def go(self, shown: Shown) -> None:
        requests = self.search.runs()
        try:
            request = next(requests)
            while True:
                run = self.journal.known(request)
                if run is None:
                    shown.running(request)
                    launch, command = self.launches.command(request.setting)
                    run = self.program.run(launch, command, limit=self._limit(request))
                    if not (
                        run.failure and request.setting == self.search.reference
                    ):  # such a failure ends the search; --resume tries it again
                        self.journal.add(request, run)
                self._keep(request, run)
                answer = Answer(self._values(run), run.seconds, run.failure)
                request = requests.send(answer)
                shown.ended()
        except StopIteration:
            shown.ended()
        except BaselineFailed as reason:
            again = f"; {done} runs succeeded before: --resume {self.journal.path} tries it again" if (done := self._went_well()) else ""
            raise Problem(f"the program fails under {named(self.search.reference)}, the baseline: {reason}{again}", FAILED) from None

    def _went_well(self) -> int:
        return sum(map(len, self.runs.values()))

    def _limit(self, request: Request) -> float | None:
        """For the first run, the limit is the time for all runs."""
        return self.program.limit or (self.search.budget.seconds if request.phase == WARM_UP else None)

    def _keep(self, request: Request, run: Run) -> None:
        if request.phase == WARM_UP:
            self._learn(run)
        elif not run.failure:
            self.runs.setdefault(request.setting, {})[request.block] = run

    def _learn(self, first: Run) -> None:
        """The first run determines how long others may take, and whether the time suffices."""
        if self.program.limit is None:
            self.program.limit = max(_LIMIT * first.seconds, _LEAST_LIMIT)
        seconds, needed = self.search.budget.seconds, self.search.fewest_runs()
        if not first.failure and seconds is not None and needed * first.seconds > seconds:
            raise Problem(
                f"--budget: {clock(seconds)} has room for {seconds / first.seconds:.0f} runs of {first.seconds:.2g} s; "
                f"accepted: {clock(needed * first.seconds + 1)} or more, for {needed} runs, or fewer --allocators"
            )

    def _values(self, run: Run) -> tuple[float, ...]:
        if run.failure:
            return ()
        if len(self.search.aims) > 1 and not run.peak_bytes:
            raise Problem("--memory: the program ends before its memory can be sampled; accepted: a program that runs longer")
        first = run.seconds if run.value is None else run.value
        return (first, run.peak_bytes)[: len(self.search.aims)]

    def looked_at(self, setting: Setting, node_of_cpu: dict[int, int]) -> list[tree.Places]:
        """An extra run, whose time does not count: sampling a program's pages disturbs it."""
        launch, command = self.launches.command(setting)
        looks: list[tree.Places] = []
        self.program.run(launch, command, lambda pids: looks.append(tree.places(pids, node_of_cpu)), self.program.limit)
        return looks
