"""Stores every run on disk as soon as it has ended: a file of JSON lines, from which a later call can continue."""

import json
import os
from dataclasses import asdict
from pathlib import Path

from numalloc_tools.launch import Setting
from numalloc_tools.problem import Problem
from numalloc_tools.tune.measure import Run
from numalloc_tools.tune.records import Request

FORMAT = 1


def as_data(setting: Setting) -> dict:
    changed = {name: value for name, value in asdict(setting).items() if value != getattr(Setting, name)}
    return changed | {"allocator": setting.allocator}


def as_setting(data: dict) -> Setting:
    options = tuple((name, value) for name, value in data.get("options", ()))
    return Setting(**{**data, "options": options})


class Journal:
    """Its first line describes the search; its member `asked` must be equal when a call resumes the search."""

    def __init__(self, path: Path, head: dict, lines: list[dict], keep: int):
        self.path, self.head = path, head
        self._known = lines
        self._file = open(path, "r+b" if keep else "xb", buffering=0)
        if keep:
            self._file.truncate(keep)  # a line that was being written when the machine stopped
            self._file.seek(keep)
        else:
            self._write(head)

    @classmethod
    def begin(cls, path: Path, asked: dict, facts: dict) -> "Journal":
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return cls(path, {"format": FORMAT, "asked": asked, "facts": facts}, [], 0)
        except OSError as error:
            reason = f"{path} cannot be written ({error.strerror})"
            raise Problem(f"--output: {reason}; accepted: a writable folder") from None

    @classmethod
    def resume(cls, path: Path, asked: dict) -> "Journal":
        try:
            content = path.read_bytes()
        except OSError as error:
            raise Problem(f"--resume: {path} cannot be read ({error.strerror}); accepted: the runs.jsonl of a search") from None
        whole = content[: content.rfind(b"\n") + 1]
        try:
            head, *lines = [json.loads(line) for line in whole.splitlines()]
            known = dict(head["asked"]) if head["format"] == FORMAT else {}
            int(head["facts"]["seed"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Problem(f"--resume: {path} is not a file of runs; accepted: the runs.jsonl of a search") from None
        for name, value in asked.items():
            if known.get(name) != value:
                said = json.dumps(known.get(name))
                raise Problem(f"--resume: {path} belongs to another search: its {name} is {said}; accepted: the same, or no --resume")
        return cls(path, head, lines, len(whole))

    @property
    def seed(self) -> int:
        return self.head["facts"]["seed"]

    def known(self, request: Request) -> Run | None:
        """The result of an earlier call for this request."""
        if not self._known:
            return None
        line = self._known.pop(0)
        try:
            known = (as_setting(line["setting"]), line["phase"], line["block"])
            same = known == (request.setting, request.phase, request.block)
            run = Run(**line["run"])
        except (KeyError, TypeError, Problem):
            same = False
        if not same:
            raise Problem(f"--resume: {self.path} does not fit this version's search; accepted: a new search, without --resume")
        return run

    def add(self, request: Request, run: Run) -> None:
        self._write(
            {
                "phase": request.phase,
                "stage": request.stage,
                "block": request.block,
                "setting": as_data(request.setting),
                "run": run.as_data(),
            }
        )

    def _write(self, line: dict) -> None:
        text = json.dumps(line).encode() + b"\n"
        try:
            while text:  # a nearly full disk accepts a part
                text = text[os.write(self._file.fileno(), text) :]
        except OSError as error:
            reason = f"{self.path} cannot be written ({error.strerror}); its contents are kept"
            raise Problem(f"--output: {reason}, and --resume {self.path} continues once it can") from None

    def close(self) -> None:
        self._file.close()
