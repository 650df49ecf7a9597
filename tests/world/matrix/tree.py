"""The processes below this one: their memory, whether the library is in them, and their end."""

import os
import threading
import time
from pathlib import Path

import psutil

_PAUSE = 0.02
_SHARE = 5  # the pause is this many times what the weighing took
_GRACE = 3.0


def members() -> list[psutil.Process]:
    return [process for process in psutil.Process().children(recursive=True) if _alive(process)]


def kill() -> list[str]:
    """Ends all of them, whatever they start meanwhile; gives the names of what was there."""
    names = []
    deadline = time.monotonic() + 10
    while (found := members()) and time.monotonic() < deadline:
        for process in found:
            try:
                names.append(process.name())
                process.kill()
            except psutil.Error:
                pass
        time.sleep(0.05)
    return names


def left_over(watcher: str) -> list[str]:
    """The names of the processes that outlive their command, which then are ended. The watcher outlives them all."""
    deadline = time.monotonic() + _GRACE
    while members() and time.monotonic() < deadline:
        time.sleep(0.05)
    names = kill()
    reap()
    return sorted(set(names) - {watcher})


def reap() -> None:
    """Orphans that came to this process; call it when no child of its own is waited for."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


class Sampler:
    """Weighs the tree again and again: the proportional set size, summed over the processes."""

    def __init__(self, library: str, watcher: str = "") -> None:
        self._library = library
        self._watcher = watcher  # a process by this name is no part of what is weighed
        self._images: dict[tuple[int, float, str], tuple[int, bool]] = {}
        self._names: dict[tuple[int, float, str], str] = {}
        self._own_words = psutil.Process().cmdline()
        self._stop = threading.Event()
        self._bound = psutil.virtual_memory().total // 2 >> 10
        self.overran = False  # it was ended before it took the machine down
        self.peak = 0
        self.samples = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._stop.set()
        self._thread.join()

    def served(self) -> set[str]:
        return {self._names[key] for key, (_, mapped) in self._images.items() if mapped}

    def unserved(self) -> set[str]:
        """Programs that had the C library and not ours in two looks at least: a loader at work has neither."""
        return {self._names[key] for key, (looks, mapped) in self._images.items() if looks > 1 and not mapped}

    def now(self) -> int:
        """Kibibytes."""
        total = 0
        for process in members():
            if self._is_ours(process):
                continue
            total += _pss(process.pid)
            if self._library:
                self._look(process)
        return total

    def _is_ours(self, process: psutil.Process) -> bool:
        """The watcher, or a child that has yet to become its command: no part of the program."""
        try:
            return process.cmdline() == self._own_words or (bool(self._watcher) and process.name() == self._watcher)
        except psutil.Error:
            return False

    def _run(self) -> None:
        pause = 0.002
        while not self._stop.wait(pause):
            begun = time.monotonic()
            if weight := self.now():
                self.samples += 1
                self.peak = max(self.peak, weight)
                if weight > self._bound:
                    self.overran = True
                    kill()
            pause = max(_PAUSE, _SHARE * (time.monotonic() - begun))

    def _look(self, process: psutil.Process) -> None:
        try:
            # A process that waits between fork and exec, or for its vfork child, is its parent's image.
            key = (process.pid, process.create_time(), os.readlink(f"/proc/{process.pid}/exe"))
            looks, mapped = self._images.get(key, (0, False))
            if mapped:
                return
            maps = Path(f"/proc/{process.pid}/maps").read_text()
            self._names[key] = process.name()
        except (psutil.Error, OSError):
            return
        if os.path.basename(self._library) in maps:
            self._images[key] = (looks, True)
        elif "/libc.so.6" in maps:  # the loader maps what is preloaded first
            self._images[key] = (looks + 1, False)


def _pss(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0
