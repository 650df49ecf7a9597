"""What was counted for the figures is kept at once, a file a run: interrupted, the same command goes on."""

import json
import os
from pathlib import Path

from numalloc_tools.problem import Problem

from research.scope.hardware import Hardware
from research.scope.results import Run


class Store:
    def __init__(self, folder: Path):
        self._folder = folder / "runs"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Problem(f"--output: {folder} cannot be written to ({error.strerror}); accepted: a folder") from None

    def find(self, name: str, key: dict, hardware: Hardware) -> Run | None:
        """The run of this name, if it was made with this command, library and machine, and went well."""
        counts = self.found(name, key, "counts")
        return Run(key["allocator"], key["threads"], counts, hardware) if counts else None

    def keep(self, name: str, key: dict, run: Run) -> None:
        self.put(name, key, "counts", run.raw)

    def found(self, name: str, key: dict, what: str):
        """What was kept by this name for the same key; None if nothing was."""
        try:
            entry = json.loads(self._path(name).read_text())
        except (OSError, ValueError):  # none, or cut short
            return None
        return entry.get(what) if entry.get("key") == json.loads(json.dumps(key)) else None

    def put(self, name: str, key: dict, what: str, value) -> None:
        part = self._path(f".{name}.{os.getpid()}")
        part.write_text(json.dumps({"key": key, what: value}) + "\n")
        os.replace(part, self._path(name))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"
