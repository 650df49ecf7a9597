"""A program under several allocators, one after the other in one machine, in the emulator that counts."""

from collections.abc import Callable
from dataclasses import dataclass

from numalloc_tools.allocators import Allocator
from numalloc_tools.guest import batch

from research.scope import launch, plugin
from research.scope.plugin import Caches, Geometry
from research.scope.results import Run
from research.scope.settings import Settings, Target


@dataclass(frozen=True)
class Wanted:
    allocator: Allocator
    threads: int  # 0: nobody said
    command: list[str]


def runs(
    target: Target,
    settings: Settings,
    wanted: list[Wanted],
    environment: dict[str, str],
    files: list[str],
    on_end: Callable[[int, Run], None] = lambda number, run: None,
) -> list[Run]:
    """In the order of `wanted`. A program that fails is a result: the run says why. `on_end` hears of each as it ends."""
    found: dict[str, Run] = {}

    def ended(name: str, counted: launch.Counted) -> None:
        one = wanted[int(name)]
        reason = _reason(counted, settings)
        found[name] = Run(
            one.allocator.name, one.threads, {} if reason or counted.counts is None else counted.counts, target.hardware, reason
        )
        on_end(int(name), found[name])

    jobs = [
        batch.Job(str(number), one.command, _variables(one.allocator, environment), timeout=settings.timeout)
        for number, one in enumerate(wanted)
    ]
    libraries = sorted({str(library) for one in wanted for library in one.allocator.libraries})
    launch.run(
        target.machine,
        jobs,
        _told(target, settings),
        ended,
        files=[*libraries, *files],
        thp=settings.thp,
        autonuma=settings.autonuma,
    )
    for number, one in enumerate(wanted):
        if str(number) not in found:
            found[str(number)] = Run(one.allocator.name, one.threads, {}, target.hardware, "the machine stopped before it ended")
            on_end(number, found[str(number)])
    return [found[str(number)] for number in range(len(wanted))]


def _variables(allocator: Allocator, environment: dict[str, str]) -> dict[str, str]:
    variables = environment | allocator.variables()
    if allocator.libraries:
        variables["LD_PRELOAD"] = " ".join([*map(str, allocator.libraries), environment.get("LD_PRELOAD", "")]).strip()
    return variables


def _told(target: Target, settings: Settings) -> plugin.Settings:
    hardware = target.hardware
    caches = {name: Geometry(*hardware.caches[name]) for name in hardware.caches}
    tlbs = {f"tlb_{name}": Geometry(*hardware.tlbs[name]) for name in hardware.tlbs}
    return plugin.Settings(
        Caches(**caches, **tlbs, llcs_per_node=target.llcs_per_node),
        settings.window,
        sample=settings.sample,
        stacks=settings.stacks,
        objects=settings.objects,
        kernel=settings.kernel,
        children=settings.children,
    )


def _reason(counted: launch.Counted, settings: Settings) -> str:
    """Why it does not count; nothing where it does."""
    result = counted.result
    last = (result.stderr.strip().splitlines() or ["nothing on standard error"])[-1]
    if result.oom_kills:
        return "the machine ran out of memory"
    if result.status in (124, 137) and counted.counts is None:  # else the program ended so by itself
        return f"it was stopped after {settings.timeout} s"
    if result.status > 128:
        return f"it was ended by signal {result.status - 128}; it last said: {last}"
    if result.status:
        return f"it ended with status {result.status}; it last said: {last}"
    if counted.counts is None:
        return "it ended well, but nothing was counted: the window never began or did not end"
    return ""
