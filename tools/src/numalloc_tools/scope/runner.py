"""Runs the programs of the figures, or takes what was kept; writes what came of it."""

from pathlib import Path

from rich.console import Console

from numalloc_tools.bench.allocators import Allocator
from numalloc_tools.scope import figures, measure, plugin
from numalloc_tools.scope.page import page
from numalloc_tools.scope.results import Results, Run
from numalloc_tools.scope.scenarios import Scenario
from numalloc_tools.scope.settings import Settings, Target
from numalloc_tools.scope.store import Store


class Runner:
    """Runs one program, or takes what was kept."""

    def __init__(
        self, store: Store, counted: Settings, command: tuple[str, ...], scenario: Scenario, scale: float, terminal: Console
    ):
        self._store, self._counted, self._scenario, self._terminal = store, counted, scenario, terminal
        self._scale = f"{scenario.scale * scale:g}"
        self._command = [*command, "--scale", self._scale, *scenario.words]

    def results(self, target: Target, compared: list[Allocator], numbers: list[int], run_missing: bool = True) -> Results:
        """All that is missing in one machine, and what stopped that one early in another one the next time. Unless
        `run_missing`, only what was kept."""
        wanted = [
            measure.Wanted(allocator, number, [*self._command, "--threads", str(number)])
            for number in numbers
            for allocator in compared
        ]
        kept = [self._store.find(*self._place(target, one), target.hardware) for one in wanted]
        missing = [number for number, run in enumerate(kept) if run is None]

        def ended(place: int, run: Run) -> None:
            if not run.reason:
                self._store.keep(*self._place(target, wanted[missing[place]]), run)
            said = run.reason or f"{run.raw['seconds_of_host']:.0f} s"
            self._terminal.print(f"{self._scenario.name} {run.name}: {said}", markup=False, highlight=False, soft_wrap=True)

        if missing and run_missing:
            for place, run in zip(
                missing, measure.runs(target, self._counted, [wanted[one] for one in missing], {}, [], ended), strict=True
            ):
                kept[place] = run
        return Results(target.hardware, self._command, self._counted.as_json(), [run for run in kept if run])

    def _place(self, target: Target, wanted: measure.Wanted) -> tuple[str, dict]:
        """The run's name, and what must be the same for it to count."""
        allocator = wanted.allocator
        key = {
            "command": wanted.command[1:], "allocator": allocator.name, "version": allocator.version, "threads": wanted.threads,
            "built": [path.stat().st_mtime for path in (plugin.library(), Path(wanted.command[0]), *allocator.libraries)],
            "machine": target.hardware.name,
            "caches": target.hardware.caches, "tlbs": target.hardware.tlbs, "cpus": target.machine.cpus,
            **self._counted.as_json(),
        }  # fmt: skip
        mark = allocator.name.replace(":", "-").replace("=", "-").replace("+", "-")
        return f"{self._scenario.name}-{self._scale}-{mark_of(target)}-{wanted.threads}-{mark}", key


def mark_of(target: Target) -> str:
    """The machine in the name of a file."""
    return f"{target.hardware.name}-{target.machine.cpus}"


def write(output: Path, found: figures.Found, swept: figures.Found, small: Target, large: Target, terminal: Console) -> None:
    """`small`, `large`: the machines of the runs and of the sweep."""
    written = 0
    for kind, group, target in (("", found, small), ("-speedup", swept, large)):
        for name, results in group.items():
            if results.good:
                (output / f"{name}{kind}-{mark_of(target)}.html").write_text(page(results, results.allocators[0]))
                written += 1
    if not written:
        return
    path = output / f"figures-{mark_of(small)}.md"
    path.write_text(figures.markdown(found, swept, f"{small.hardware.title}, with {small.machine.cpus} CPUs in use"))
    terminal.print(f"{path} and {written} pages are written", highlight=False)
