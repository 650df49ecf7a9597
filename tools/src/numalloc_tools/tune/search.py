"""The search: races between settings, then new runs that show whether the best setting is better than the baseline.

This module starts no process. `runs()` yields one request after the other, and is sent the results."""

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from numalloc_tools.launch import Setting
from numalloc_tools.tune import intervals, race
from numalloc_tools.tune.budget import Budget
from numalloc_tools.tune.changes import levers, part_of
from numalloc_tools.tune.records import CONFIRMATION, RACE, WARM_UP, Answer, Comparison, Records, Request

MOST_BLOCKS = 10  # of a stage: settings that are not distinguished by then are close enough
MOST_PAIRS, GOOD_PAIRS = 20, 8  # of the confirmation; more settings take part only if each gets GOOD_PAIRS
MOST_SIMPLER = 2  # of them
CONFIRMED_PART = 0.4  # fraction of the budget reserved for it
LEAST_GAIN = 0.01

Runs = Generator[Request, Answer, None]


class BaselineFailed(Exception):
    """The program does not run under the baseline."""


@dataclass(frozen=True)
class Stage:
    """One lever, or levers that only make sense together: the changes to try on the current leaders."""

    name: str
    vary: Callable[[Sequence[Setting]], list[Setting]]
    leaders: int = 1  # how many settings continue after the stage
    only: Callable[[Setting], bool] | None = None  # the best of these settings takes part even if it does not lead


@dataclass
class Found:
    chosen: Setting | None = None  # empty: the baseline is as good
    front: list[Setting] = field(default_factory=list)  # with two aims, the settings that no other beats in both
    verdict: str = "interrupted"


class Search:
    def __init__(
        self,
        stages: Sequence[Stage],
        baselines: Sequence[Setting],  # the first is the baseline of comparisons
        budget: Budget,
        records: Records,
        refused: Callable[[Setting], str] = lambda setting: "",  # the reason why this machine cannot run it
        least_gain: float = LEAST_GAIN,
    ):
        self.stages, self.baselines, self.budget, self.records = stages, list(baselines), budget, records
        self.reference = self.baselines[0]
        self.least_gain = least_gain
        self.fallen: dict[Setting, str] = {}  # settings under which the program failed
        self.left_out: dict[Setting, str] = {}  # never tried
        self.beaten: dict[Setting, int] = {}  # the number of blocks after which it left the race
        self.skipped: list[str] = []  # stages for which the budget had no room
        self._searched: set[Setting] = set()  # settings that stages added; a baseline may take part only for comparison
        self.arms: list[Setting] = []  # of the confirmation
        self.found = Found()
        self.stage_begins: dict[tuple[str, str], int] = {}  # the first block of each phase and stage
        self._refused = refused
        self._random = random.Random(1)
        self._block = 0

    def shuffle_by(self, seed: int) -> None:
        self._random = random.Random(seed)

    @property
    def aims(self) -> range:
        return range(len(self.records.aims))

    @property
    def level(self) -> float:
        """The level of each interval that decides: with two aims, up to three settings are compared in both."""
        return intervals.LEVEL if len(self.aims) == 1 else 1 - (1 - intervals.LEVEL) / 6

    @property
    def fewest_pairs(self) -> int:
        return intervals.fewest(self.level)

    def fewest_runs(self) -> int:
        """The smallest number of runs with which the search can show anything."""
        first = self._candidates(self.stages[0], self.baselines[:1]) if self.stages else []
        return 1 + len({*self.baselines, *first}) + 2 * self.fewest_pairs

    def runs(self) -> Runs:
        yield from self._run_block(self.baselines[:1], WARM_UP, WARM_UP)
        leaders: list[Setting] = []
        reserve = max(2 * self.fewest_pairs, int(CONFIRMED_PART * self.budget.left()))
        for number, stage in enumerate(self.stages):
            leaders = yield from self._race(number, stage, leaders, reserve)
        yield from self._confirm(leaders or self.baselines[:1])

    def _run_block(self, settings: Sequence[Setting], phase: str, stage: str) -> Runs:
        """Each setting once, in random order: a temporary slowdown of the machine affects all of them."""
        self._block += 1
        self.stage_begins.setdefault((phase, stage), self._block)
        order = list(settings)
        self._random.shuffle(order)
        for setting in order:
            request = Request(setting, phase, stage, self._block)
            answer = yield request
            self.budget.count(answer.seconds)
            if answer.failure:
                if setting == self.reference:
                    raise BaselineFailed(answer.failure)
                self.fallen[setting] = answer.failure
            elif phase != WARM_UP:
                self.records.add(request, answer)

    def _candidates(self, stage: Stage, leaders: Sequence[Setting]) -> list[Setting]:
        """The settings that the stage adds and this machine can run."""
        known = {*self.records.values, *self.fallen, *self.baselines}
        varied = dict.fromkeys(stage.vary(leaders))
        return [setting for setting in varied if setting not in known and not self._refused(setting)]

    def _note(self, stage: Stage, leaders: Sequence[Setting]) -> None:
        for setting in stage.vary(leaders):
            self._searched.add(setting)
            if reason := self._refused(setting):
                self.left_out[setting] = reason

    def _race(self, number: int, stage: Stage, leaders: list[Setting], reserve: int) -> Generator[Request, Answer, list[Setting]]:
        leaders = self._with_best_of(stage, leaders)
        self._note(stage, leaders)
        fresh = self._candidates(stage, leaders)
        base = [one for one in dict.fromkeys([*self.baselines, *leaders]) if one not in self.fallen]
        room = self.budget.left() - reserve
        if number:
            some = self._with_room(fresh, room // race.FIRST_LOOK - len(base))
            if len(some) < len(fresh):
                self.skipped.append(f"{stage.name} ({len(fresh) - len(some)} of {len(fresh)})" if some else stage.name)
            if not some:
                return leaders
            fresh = some
        alive = [*base, *fresh]
        share = room * len(alive) / (len(alive) + self._later(number, leaders or alive))
        blocks: list[int] = []
        begun = self.budget.done
        contenders = alive
        while len(blocks) < MOST_BLOCKS and (len(contenders) > 1 or not blocks):
            spent = self.budget.done - begun
            fits = self.budget.left() - len(alive) >= reserve
            if blocks and not (fits and (spent + len(alive) <= share or len(blocks) < race.FIRST_LOOK)):
                break
            yield from self._run_block(alive, RACE, stage.name)
            blocks.append(self._block)
            contenders = self._contenders([setting for setting in alive if setting not in self.fallen], blocks)
            alive = list(dict.fromkeys([*(one for one in self.baselines if one not in self.fallen), *contenders]))
        contenders = [setting for setting in contenders if setting in self._searched]
        return self._leaders(contenders, blocks, stage.leaders) if contenders else []

    def _with_room(self, fresh: list[Setting], count: int) -> list[Setting]:
        """Sorted by the number of changes, then by the rank of the leader from which a setting was made."""
        places = {setting: place for place, setting in enumerate(fresh)}
        return sorted(fresh, key=lambda setting: (levers(setting), places[setting]))[: max(count, 0)]

    def _later(self, number: int, leaders: Sequence[Setting]) -> int:
        """The approximate number of settings in the blocks of later stages."""
        sizes = []
        for stage in self.stages[number + 1 :]:
            sizes.append(max(len(self._candidates(stage, [one])) for one in self._with_best_of(stage, [*leaders])))
        return sum(size + len(self.baselines) + 1 for size in sizes if size)

    def _with_best_of(self, stage: Stage, leaders: list[Setting]) -> list[Setting]:
        if stage.only is None or any(stage.only(setting) for setting in leaders):
            return leaders
        able = [setting for setting in self._unbeaten() if stage.only(setting)]
        return [*leaders, *sorted(able, key=self._raced)[:1]]

    def _unbeaten(self) -> list[Setting]:
        gone = {*self.beaten, *self.fallen}
        return [setting for setting in self.records.values if setting in self._searched and setting not in gone]

    def _raced(self, setting: Setting) -> float:
        """The setting's result in the race."""
        found = self.records.compared(setting, self.reference, phase=RACE)
        return found.difference if found else 0.0

    def _contenders(self, alive: list[Setting], blocks: list[int]) -> list[Setting]:
        """A setting leaves the race if another one is significantly better in one aim, and not worse in the other."""
        losses = [self.records.losses(aim, alive, blocks) for aim in self.aims]
        worse = [race.worse_than(matrix) for matrix in losses]
        means = [matrix.mean(axis=0) for matrix in losses]
        kept = []
        for j, setting in enumerate(alive):
            beaten = any(
                worse[aim][i, j] and all(means[other][j] >= means[other][i] - self.least_gain for other in self.aims)
                for i in range(len(alive))
                for aim in self.aims
            )
            if not beaten:
                kept.append(setting)
            elif setting != self.reference:
                self.beaten.setdefault(setting, len(blocks))
        return kept

    def _leaders(self, contenders: list[Setting], blocks: list[int], count: int) -> list[Setting]:
        """The best; with two aims also the one with least memory and the best compromise. Among nearly equal ones, the simplest."""
        losses = [self.records.losses(aim, contenders, blocks) for aim in self.aims]
        centres = [{s: intervals.centre(matrix[:, k] - matrix[:, 0]) for k, s in enumerate(contenders)} for matrix in losses]
        if len(self.aims) == 1:
            wishes = [centres[0]] * count
        else:
            wishes = [{s: sum(one[s] for one in centres) for s in contenders}, *centres]
        leaders: list[Setting] = []
        for wish in wishes:
            rest = [setting for setting in contenders if len(self.aims) > 1 or setting not in leaders]
            if rest:
                best = min(wish[setting] for setting in rest)
                near = [setting for setting in rest if wish[setting] <= best + self.least_gain]
                leaders.append(min(near, key=lambda setting: (levers(setting), wish[setting])))
        return list(dict.fromkeys(leaders))

    def _confirm(self, leaders: list[Setting]) -> Runs:
        """Luck affects the race's choice too. So the chosen settings are measured again, and only these runs count."""
        room = self.budget.left()
        front = [setting for setting in leaders if setting != self.reference]
        front = front[: max(room // self.fewest_pairs - 1, 1) if len(self.aims) > 1 else 1]
        self.found.verdict = "no significant difference"
        if not front or leaders[0] == self.reference and len(self.aims) == 1:
            return
        simpler = []
        if len(self.aims) == 1:  # a setting with fewer changes may be as good
            parts = [one for one in self._unbeaten() if part_of(one, front[0]) and one != self.reference]
            simpler = sorted(parts, key=self._raced)[: min(max(room // GOOD_PAIRS - 2, 0), MOST_SIMPLER)]
            if parts and not simpler:  # no room for runs: changes without a shown gain are dropped
                front = [min(parts, key=lambda one: (levers(one), self._raced(one)))]
        self.arms = [self.reference, *front, *simpler]
        pairs = min(max(self.budget.left() // len(self.arms), self.fewest_pairs), MOST_PAIRS)
        for _ in range(pairs):
            yield from self._run_block([arm for arm in self.arms if arm not in self.fallen], CONFIRMATION, CONFIRMATION)
        self._decide([setting for setting in front if setting not in self.fallen])

    def confirmed(self, setting: Setting, other: Setting | None = None, aim: int = 0) -> Comparison | None:
        return self.records.compared(setting, other or self.reference, aim, CONFIRMATION, self.level)

    def worthwhile(self, setting: Setting, aim: int = 0) -> bool:
        """Whether it is significantly better than the baseline, and by at least the least gain."""
        found = self.confirmed(setting, aim=aim)
        return found is not None and found.better and found.gain() >= self.least_gain

    def _decide(self, front: list[Setting]) -> None:
        proven = [setting for setting in front if any(self.worthwhile(setting, aim) for aim in self.aims)]
        if not proven:
            if any(self._better_at_all(setting) for setting in front):
                self.found.verdict = "too small"
            return
        self.found.verdict = "better"
        self.found.front = proven
        self.found.chosen = proven[0]
        if len(self.aims) == 1:
            for simpler in sorted((arm for arm in self.arms[2:] if arm not in self.fallen), key=levers):
                beside = self.confirmed(proven[0], simpler)
                if beside and not beside.better and self.worthwhile(simpler):
                    self.found.chosen = simpler
                    break
            self.found.front = [self.found.chosen]

    def _better_at_all(self, setting: Setting) -> bool:
        return any(found.better for aim in self.aims if (found := self.confirmed(setting, aim=aim)))
