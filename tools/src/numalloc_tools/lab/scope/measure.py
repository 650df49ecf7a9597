"""One run: a program under an allocator, in the emulator that counts."""

from numalloc_tools.bench.allocators import Allocator
from numalloc_tools.lab.scope import launch
from numalloc_tools.lab.scope.results import Run
from numalloc_tools.lab.scope.settings import Settings, Target
from numalloc_tools.problem import Problem


def run(
    target: Target, settings: Settings, allocator: Allocator, command: list[str], threads: int,
    environment: dict[str, str], files: list[str],
) -> Run:  # fmt: skip
    """A program that fails is a result: the run says why."""
    variables = environment | allocator.variables()
    if allocator.libraries:
        variables["LD_PRELOAD"] = " ".join([*map(str, allocator.libraries), variables.get("LD_PRELOAD", "")]).strip()
    try:
        raw = launch.counts_of(target, settings, command, variables, files)
    except Problem as problem:
        return Run(allocator.name, threads, {}, target.hardware, str(problem))
    return Run(allocator.name, threads, raw, target.hardware)
