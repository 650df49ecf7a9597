"""For the tests of stat, top and exporter: programs to look at, the command, and a writer of the library's page."""

import contextlib
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from limits import LIMIT

COMMAND = [sys.executable, "-c", "from numalloc_tools.cli import main; main()"]
NODE_NAMES = ["small_live", "remote_frees", "free_bytes"]
CLASS_NAMES = ["live", "lists", "ring"]
PROCESS_NAMES = ["nodes", "refused_binding", "refused_binding_error"]
MIB = 1 << 20


def numalloc(*arguments, **options) -> subprocess.CompletedProcess:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT, **options)


def stat(pid: int, *arguments) -> dict:
    done = numalloc("stat", pid, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextlib.contextmanager
def program(megabytes: int = 0, then: str = "input()") -> Iterator[subprocess.Popen]:
    """A program that has written so much memory of its own, and then waits."""
    code = f"held = bytearray({megabytes} << 20); held[::4096] = b'x' * len(held[::4096]); print(1, flush=True); {then}"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate(timeout=LIMIT)


def start_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@dataclass
class WrittenPage:
    """What the library writes, byte by byte, so that a reader that drifts from the format is found."""

    pid: int
    start: int
    nodes: dict[int, list[int]] = field(default_factory=lambda: {0: [4096, 7, 8192], -1: [9, 9, 9], -2: [0, 0, 0]})
    classes: list[tuple[int, int, list[int]]] = field(
        default_factory=lambda: [(0, 64, [64, 3, 5]), (1, 64, [9, 9, 9]), (2, 32768, [0, 0, 0])]
    )
    process: list[int] = field(default_factory=lambda: [2, 0, 0])
    names: tuple[list[str], list[str], list[str]] = (NODE_NAMES, CLASS_NAMES, PROCESS_NAMES)
    sequence: int = 2
    version: int = 2
    magic: bytes = b"NUMASTAT"
    updated_at: int = 5
    extra: int = 0  # bytes that a later version may have at the end of each record

    @property
    def path(self) -> Path:
        return Path(f"/dev/shm/numalloc-{os.geteuid()}-{self.pid}")

    def content(self) -> bytes:
        names = b"\0".join(b"".join(name.encode() + b"\0" for name in part) for part in self.names)
        node_bytes, class_bytes, process_bytes = (beside + 8 * len(part) + self.extra for beside, part in zip((8, 8, 0), self.names))
        content = self.magic + struct.pack(
            "=IIIIIIQQQII",
            self.version,
            64,
            len(self.nodes),
            node_bytes,
            len(self.classes),
            class_bytes,
            self.start,
            self.sequence,
            self.updated_at,
            process_bytes,
            0,
        )
        content += struct.pack("=I", len(names)) + names
        content += b"\0" * (-len(content) % 8)
        content += struct.pack(f"={len(self.process)}Q", *self.process) + b"\xff" * self.extra
        for node, values in self.nodes.items():
            content += struct.pack(f"=q{len(values)}Q", node, *values) + b"\xff" * self.extra
        for index, size, values in self.classes:
            content += struct.pack(f"=II{len(values)}Q", index, size, *values) + b"\xff" * self.extra
        return content

    @contextlib.contextmanager
    def written(self) -> Iterator["WrittenPage"]:
        file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        os.write(file, self.content())
        os.close(file)
        try:
            yield self
        finally:
            self.path.unlink(missing_ok=True)
