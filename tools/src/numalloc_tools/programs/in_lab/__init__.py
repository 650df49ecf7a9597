"""Debian's programs in the lab's virtual machine: a script starts each one under the allocator, generates its load, checks
its answers and ends it; a second preloaded library counts the nodes of its pages."""

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from numalloc_tools.allocators import BASELINE, BOUND, Allocator
from numalloc_tools.guest import batch, programs

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class InLab:
    script: str
    amount: int  # amount of work at scale 1
    least: int
    commands: tuple[str, ...] = ()  # commands that the script calls
    also: tuple[str, ...] = ()  # files that it reads
    source: str = ""  # for a program that is compiled first: a file of bench/real, and its libraries
    link: tuple[str, ...] = ()
    needs: dict[str, str] = field(default_factory=dict)  # files, each with its Debian package
    adapt: Callable[[Allocator], Allocator] = lambda allocator: allocator
    # Commands for a number of threads and an amount of work; the script calls them by these names.
    words: Callable[[int, int], dict[str, list[str]]] = lambda threads, amount: {}

    @property
    def missing(self) -> str:
        packages = sorted({package for path, package in self.needs.items() if not os.path.exists(path)})
        return f"not installed: apt install {' '.join(packages)}" if packages else ""

    def job(self, name: str, allocator: Allocator, threads: int, scale: float, timeout: int, sources: Path) -> batch.Job:
        """`sources`: bench/real of the working tree."""
        allocator = self.adapt(allocator)
        preload = ":".join(map(str, (watcher(), *allocator.libraries)))
        amount = max(self.least, round(self.amount * scale))
        environment = {"PRELOAD": preload, "THREADS": str(threads), "AMOUNT": str(amount)}
        if self.source:
            environment[self.source.upper().replace("-", "_")] = str(self._built(sources))
        begin, script = ((_FOLDER / f"{part}.sh").read_text() for part in ("begin", self.script))
        named = "".join(f"{one}() {{ {shlex.join(words)}; }}\n" for one, words in self.words(threads, amount).items())
        return batch.Job(name, ["/bin/sh", "-c", begin + named + script], allocator.variables() | environment, timeout=timeout)

    def files(self, allocator: Allocator, sources: Path) -> list[str]:
        """The files that its job needs in the guest, besides the commands."""
        built = [self._built(sources)] if self.source else []
        return [str(path) for path in (watcher(), *built, *self.also, *self.adapt(allocator).libraries)]

    def _built(self, sources: Path) -> Path:
        return programs.built(self.source, sources, flags=self.link)


def watcher() -> Path:
    return programs.built("watch_pages", _FOLDER, flags=("-shared", "-fPIC", "-ldl"))


def other_malloc(said: dict, allocator: Allocator) -> str:
    """The malloc of a program that did not use `allocator`'s: some have their own."""
    found = str(said.get("allocator", ""))
    if allocator.name.removesuffix(BOUND) == BASELINE:
        good = Path(found).name.startswith("libc.so")
    else:
        good = Path(found).resolve() == allocator.libraries[-1].resolve()
    return "" if good else found or "an unknown allocator"
