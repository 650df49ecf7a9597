"""What a proof has measured is kept at once, a line a cell, so that nothing is lost when it is interrupted
and the next call goes on from there. Two proofs may write to one folder at the same time."""

import json
import os
from dataclasses import fields
from pathlib import Path

from numalloc_tools.guest.scenarios import Cell, Scenario, Switches
from numalloc_tools.problem import Problem

Key = tuple[Scenario, Switches, str]


class Store:
    """The cells that were measured on one kind of machine with these versions of the allocators."""

    def __init__(self, folder: Path, machine: dict, versions: dict[str, str]):
        self._path = folder / "cells.jsonl"
        self._machine = machine
        self._versions = versions
        self.cells: dict[Key, Cell] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o666)
        except OSError as error:
            raise Problem(f"--output: {folder} cannot be written to ({error.strerror})") from None
        kept = self._path.read_text()
        if kept and not kept.endswith("\n"):  # cut short when the machine went down
            os.write(self._file, b"\n")
        for line in kept.splitlines():
            try:
                entry = json.loads(line)
                if entry["machine"] == machine and entry["version"] == versions.get(entry["cell"]["allocator"]):
                    self._put(_cell(entry["cell"]))
            except (ValueError, KeyError, TypeError):  # cut short, or written by an older numalloc
                continue

    def has(self, scenario: Scenario, switches: Switches, allocator: str) -> bool:
        """Whether there are figures; what has failed is tried again."""
        kept = self.cells.get((scenario, switches, allocator))
        return kept is not None and not kept.failure

    def add(self, cell: Cell) -> None:
        entry = {"machine": self._machine, "version": self._versions[cell.allocator], "cell": cell.as_dict()}
        os.write(self._file, (json.dumps(entry) + "\n").encode())  # one call, so that lines of two proofs do not mix
        self._put(cell)

    def _put(self, cell: Cell) -> None:
        self.cells[cell.scenario, cell.switches, cell.allocator] = cell


def _cell(entry: dict) -> Cell:
    values = {field.name: entry[field.name] for field in fields(Cell)}
    values["scenario"] = Scenario(**entry["scenario"])
    values["switches"] = Switches(**entry["switches"])
    values |= {name: tuple(entry[name]) for name in ("spread", "threads_on")}
    return Cell(**values)
