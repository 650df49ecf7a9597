"""Runs the programs of the figures, or takes what was kept; writes what came of it."""

from dataclasses import replace
from pathlib import Path

from numalloc_tools.allocators import BASELINE, Allocator
from numalloc_tools.style import save
from rich.console import Console

from research.scope import drawing, figures, host, measure, plugin, scenarios
from research.scope.host import Beside
from research.scope.page import page
from research.scope.results import Results, Run
from research.scope.scenarios import Scenario
from research.scope.settings import Settings, Target
from research.scope.store import Store


class Runner:
    """Runs one program, or takes what was kept."""

    def __init__(self, store: Store, counted: Settings, command: tuple[str, ...], scenario: Scenario, scale: float, terminal: Console):
        self._store, self._counted, self._scenario, self._terminal = store, counted, scenario, terminal
        self._scale = f"{scenario.scale * scale:g}"
        self.ran = False  # whether anything was run, and not only taken
        self._command = [*command, "--scale", self._scale, *scenario.words]

    @property
    def name(self) -> str:
        return f"{self._scenario.name}-{self._scale}"

    def say(self, text: str) -> None:
        self._terminal.print(f"{self._scenario.name} {text}", markup=False, highlight=False, soft_wrap=True)

    def key_on_host(self, target: Target, compared: list[Allocator]) -> dict:
        """What must be the same for the times of this machine to count."""
        wanted = [measure.Wanted(one, scenarios.HOST_THREADS, self._command) for one in compared]
        return {"runs": [self._place(target, one)[1] for one in wanted], "rounds": scenarios.HOST_ROUNDS}

    def results(self, target: Target, compared: list[Allocator], numbers: list[int], run_missing: bool = True) -> Results:
        """All that is missing in one machine, and what stopped that one early in another one the next time. Unless
        `run_missing`, only what was kept."""
        wanted = [
            measure.Wanted(allocator, number, [*self._command, "--threads", str(number)]) for number in numbers for allocator in compared
        ]
        kept = [self._store.find(*self._place(target, one), target.hardware) for one in wanted]
        missing = [number for number, run in enumerate(kept) if run is None]

        def ended(place: int, run: Run) -> None:
            if not run.reason:
                self._store.keep(*self._place(target, wanted[missing[place]]), run)
            said = run.reason or f"{run.raw['seconds_of_host']:.0f} s"
            self.say(f"{run.name}: {said}")

        if missing and run_missing:
            self.ran = True
            for place, run in zip(
                missing, measure.runs(target, self._counted, [wanted[one] for one in missing], {}, [], ended), strict=True
            ):
                kept[place] = run
        return Results(target.hardware, self._command, self._counted.as_json(), [run for run in kept if run])

    def _place(self, target: Target, wanted: measure.Wanted) -> tuple[str, dict]:
        """The run's name, and what must be the same for it to count."""
        allocator = wanted.allocator
        key = {
            "command": wanted.command[1:],
            "allocator": allocator.name,
            "version": allocator.version,
            "threads": wanted.threads,
            "built": [path.stat().st_mtime for path in (plugin.library(), Path(wanted.command[0]), *allocator.libraries)],
            "machine": target.hardware.name,
            "caches": target.hardware.caches,
            "tlbs": target.hardware.tlbs,
            "cpus": target.machine.cpus,
            **self._counted.as_json(),
        }
        mark = allocator.name.replace(":", "-").replace("=", "-").replace("+", "-")
        return f"{self.name}-{mark_of(target)}-{wanted.threads}-{mark}", key


def mark_of(target: Target) -> str:
    """The machine in the name of a file."""
    return f"{target.hardware.name}-{target.machine.cpus}"


def hosted(runner: Runner, store: Store, target: Target, compared: list[Allocator], run_missing: bool) -> list[Beside]:
    """The program under each allocator in the emulator and on this machine; what was kept is not run again."""
    key = runner.key_on_host(target, compared)
    name = f"{runner.name}-host"
    if (rows := store.found(name, key, "beside")) is None and run_missing:
        results = runner.results(target, compared, [scenarios.HOST_THREADS])
        if len(results.good) < len(compared):
            return []
        found = host.beside(
            results.runs,
            compared,
            [*results.command, "--threads", str(scenarios.HOST_THREADS)],
            scenarios.HOST_ROUNDS,
            lambda said: runner.say(said),
            callgrind=False,
        )
        rows = [vars(one) for one in found]
        store.put(name, key, "beside", rows)
    return [Beside(**row) for row in rows or []]


def write(
    output: Path,
    found: figures.Found,
    swept: figures.Found,
    fresh: set[str],
    small: Target,
    large: Target,
    around: figures.Around,
    document: Path | None,
    terminal: Console,
) -> None:
    """`small`, `large`: the machines of the runs and of the sweep. `fresh`: programs that were run, others' pages stay as
    they are. `document`: the text; else in `output`."""
    written = 0
    for kind, group, target in (("", found, small), ("-speedup", swept, large)):
        for name, results in group.items():
            path = output / f"{name}{kind}-{mark_of(target)}.html"
            if results.good and (name in fresh or not path.exists()):
                path.write_text(page(results, results.allocators[0]))
                written += 1
    if not any(results.good for results in (*found.values(), *swept.values())) and not around.hosted:
        return
    path = document or output / f"figures-{mark_of(small)}.md"
    pictures = _drawn(found, swept, path)
    machine = f"{small.hardware.title}, with {small.machine.cpus} CPUs in use"
    path.write_text(figures.markdown(found, swept, machine, replace(around, pictures=pictures)))
    terminal.print(f"{path}, {len(pictures)} pictures and {written} pages are written", highlight=False, soft_wrap=True)


def _drawn(found: figures.Found, swept: figures.Found, document: Path) -> dict[str, str]:
    """Pictures beside the text, by the heading that they belong to."""
    made = {
        heading: drawing.ratios(ratios, label)
        for heading, ratios, label in (
            (figures.TIMES, figures.times(found), f"modelled time over {BASELINE}'s"),
            (figures.BINDING, figures.binding(found), "bound, over not bound"),
            (figures.MECHANISMS, figures.mechanisms(found), "changed, over numalloc as it comes"),
        )
        if any(ratios.values())
    }
    if (curves := drawing.speedups(swept, BASELINE)) is not None:
        made[figures.SPEEDUP] = curves
    ends = {figures.TIMES: "times", figures.BINDING: "binding", figures.MECHANISMS: "mechanisms", figures.SPEEDUP: "speedup"}
    names = {}
    for heading, figure in made.items():
        names[heading] = f"{document.stem}-{ends[heading]}.svg"
        save(figure, document.with_name(names[heading]))
        drawing.plt.close(figure)
    return names
