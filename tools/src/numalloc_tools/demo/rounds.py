"""The part of `numalloc demo` on this machine: rounds of one program under each allocator."""

import tempfile
from pathlib import Path
from types import ModuleType

from rich.console import Console

from numalloc_tools.allocators import Allocator
from numalloc_tools.demo.measurement import Run
from numalloc_tools.demo.steps import Steps
from numalloc_tools.guest.vm import end_in_order_on_signals


def run(module: ModuleType, allocators: list[Allocator], rounds: int, requests: int, terminal: Console) -> list[Run]:
    end_in_order_on_signals()
    runs: list[Run] = []
    with Steps(terminal, rounds * len(allocators), module.NAME) as steps:
        for number in range(1, rounds + 1):
            # Each round begins with another one, so that none always follows the same neighbour.
            for place in range(len(allocators)):
                one = allocators[(place + number - 1) % len(allocators)]
                doing = f"round {number} of {rounds}: {module.NAME} under {one.name}"
                steps.begin(doing)
                steps.print_without_bar(doing)
                with tempfile.TemporaryDirectory(prefix="numalloc-demo-") as folder:
                    runs.append(module.run(one, number, requests, Path(folder)))
                steps.end()
    return runs
