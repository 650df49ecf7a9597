"""What a command has counted under several allocators, with the time modelled from it; written as JSON and read again."""

import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from research.scope import counts, model
from research.scope.counts import Scope
from research.scope.hardware import Hardware
from research.scope.model import Modelled

FORMAT, VERSION = "numalloc-scope", 1


@dataclass(frozen=True)
class Run:
    allocator: str
    threads: int  # 0: nobody said
    raw: dict  # the counts; empty where it failed
    hardware: Hardware
    reason: str = ""  # why it failed

    @cached_property
    def scope(self) -> Scope:
        return counts.read(self.raw)

    @cached_property
    def modelled(self) -> Modelled:
        return model.modelled(self.scope, self.hardware)

    @property
    def name(self) -> str:
        return f"{self.allocator}/{self.threads}" if self.threads else self.allocator

    def as_json(self) -> dict:
        found: dict = {"allocator": self.allocator, "threads": self.threads, "reason": self.reason}
        if not self.reason:
            found |= {"modelled": self.modelled.as_json(), "summary": summary(self), "counts": self.raw}
        return found


@dataclass
class Results:
    hardware: Hardware
    command: list[str]
    settings: dict
    runs: list[Run] = field(default_factory=list)

    @property
    def good(self) -> list[Run]:
        return [run for run in self.runs if not run.reason]

    @property
    def allocators(self) -> list[str]:
        return list(dict.fromkeys(run.allocator for run in self.good))

    @property
    def most_threads(self) -> list[Run]:
        """One run an allocator: with the most threads, where there are several."""
        most = max((run.threads for run in self.good), default=0)
        return [run for run in self.good if run.threads == most]

    def order_holds(self) -> bool:
        """Whether the allocators stand in the same order of modelled time when latencies are halved and doubled."""
        runs = self.most_threads
        orders = [
            [run.allocator for run in sorted(runs, key=key)]
            for key in (lambda run: run.modelled.seconds, lambda run: run.modelled.range[0], lambda run: run.modelled.range[1])
        ]
        return orders[0] == orders[1] == orders[2]

    def write(self, path: Path) -> None:
        content = {
            "format": FORMAT,
            "version": VERSION,
            "machine": self.hardware.as_json(),
            "command": self.command,
            "settings": self.settings,
            "runs": [run.as_json() for run in self.runs],
        }
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_text(json.dumps(content) + "\n")
        os.replace(part, path)


def summary(run: Run) -> dict[str, float | None]:
    """The figures that one looks at first. A remote share alone misleads: it stands among what it needs beside it."""
    scope, found = run.scope, run.modelled
    return {
        "modelled_seconds": found.seconds,
        "modelled_seconds_at_half_latency": found.range[0],
        "modelled_seconds_at_twice_latency": found.range[1],
        "instructions": scope.instructions,
        "memory_lines": scope.fills,
        "remote_memory_lines": scope.remote_fills,
        "remote_share": scope.remote_share,
        "memory_balance": scope.balance,
        "work_balance": scope.work_balance,
        "other_caches_lines": scope.transfers,
        "remote_caches_lines": scope.remote_transfers,
        "false_sharing": scope.cause("false_sharing"),
        "tlb_misses": scope.tlb_misses,
        "allocator_instructions": scope.instructions_of("allocator"),
        "allocator_remote_lines": scope.remote_lines_of("allocator"),
        "allocator_remote_lines_on_objects": scope.allocator_remote_lines_on("objects"),
        "allocator_remote_lines_on_own": scope.allocator_remote_lines_on("own"),
        "kernel_instructions": scope.instructions_of("kernel"),
        "kernel_remote_lines": scope.remote_lines_of("kernel"),
    }
