"""memcached with four connections that send and read in large batches, so that the server is the bottleneck."""

import os
import socket
import threading
import time
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.launch.launcher import Ended
from numalloc_tools.programs import Work
from numalloc_tools.programs.in_lab import InLab
from numalloc_tools.programs.real.server import LoadFailed, served, temporary_folder

NAME, FAMILY, THREADS, QUICK = "memcached", "servers", (1, 2, 4), False
DESCRIPTION = "memcached with this number of threads; four connections set and get values of 10 to 2,000 bytes and compare them"
NEEDS = {"memcached": "memcached"}
_ITEMS = 60_000  # per connection
_CONNECTIONS, _BATCH = 4, 200
_SECONDS = 30.0  # until an answer
LAB = InLab("memcached", _ITEMS, 500, ("memcached",), also=("/etc/passwd",))


def run(allocator: Allocator, work: Work) -> Ended:
    items = max(500, round(_ITEMS * work.scale))
    with temporary_folder() as name:
        path = str(Path(name, "socket"))

        def ready() -> bool:
            try:
                _connected(path).close()
            except OSError:
                return False
            return True

        def load() -> tuple[int, float]:
            clients = [_Client(path, number, items) for number in range(_CONNECTIONS)]
            begun = time.perf_counter()
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            seconds = time.perf_counter() - begun
            for client in clients:
                if client.trouble:
                    raise LoadFailed(client.trouble)
            return 2 * items * _CONNECTIONS, seconds

        words = ["memcached", "-s", path, "-t", str(work.threads), "-m", "1024"]
        if os.getuid() == 0:
            words += ["-u", "root"]
        return served(words, allocator, work, Path(name), ready, load, None, lambda running: running.ask_to_end())


def _connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_SECONDS)
    connection.connect(path)
    return connection


class _Client(threading.Thread):
    def __init__(self, path: str, number: int, items: int):
        super().__init__(daemon=True)
        self._connection = _connected(path)
        self.trouble = ""
        self._requests, self._answers = [], []
        for first in range(0, items, _BATCH):
            some = [
                (f"{number}-{i}".encode(), bytes([97 + i % 26]) * (10 + i * 7919 % 1991)) for i in range(first, min(first + _BATCH, items))
            ]
            self._requests.append(b"".join(b"set %b 0 0 %d\r\n%b\r\n" % (key, len(value), value) for key, value in some))
            self._answers.append(b"STORED\r\n" * len(some))
            self._requests.append(b"get %b\r\n" % b" ".join(key for key, _ in some))
            self._answers.append(b"".join(b"VALUE %b 0 %d\r\n%b\r\n" % (key, len(value), value) for key, value in some) + b"END\r\n")

    def run(self) -> None:
        try:
            for request, wanted in zip(self._requests, self._answers, strict=True):
                self._connection.sendall(request)
                got = bytearray()
                while len(got) < len(wanted) and (part := self._connection.recv(1 << 20)):
                    got += part
                if got != wanted:
                    self.trouble = "memcached returned a wrong value"
                    return
        except OSError as error:
            self.trouble = f"memcached does not answer: {error}"
        finally:
            self._connection.close()
