"""redis-server under redis-benchmark. The load comes from a process of its own, on the system's malloc."""

import subprocess
import time
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.demo import process
from numalloc_tools.demo.measurement import THROUGHPUT, Figure, Run, after_work, settled_memory
from numalloc_tools.problem import Problem
from numalloc_tools.programs.real import redis

NAME = "redis"
REQUESTS = 200_000
ABOUT = "{requests:,} requests of each kind; 50 clients, 16 requests in flight each; values of 128 bytes"
_SETTLE = 3.0  # seconds
_PATIENCE = 30.0


def program() -> str:
    for tool in ("redis-benchmark", "redis-cli"):
        process.find(tool, "redis-tools")
    return process.find("redis-server", "redis-server")


def run(allocator: Allocator, number: int, requests: int, folder: Path) -> Run:
    socket, log = folder / "socket", folder / "log"
    command = [program(), *redis.server(str(socket), "--dir", str(folder), "--daemonize", "no")[1:]]
    with process.started(command, allocator, log) as server:
        _wait_until_up(server, allocator, socket, log)
        process.require_library(server, allocator)
        throughput = _benchmark(server, allocator, socket, log, requests)
        held, source = after_work(server.pid)
        _ask(socket, "flushall", "sync")
        time.sleep(_SETTLE)
        if server.poll() is not None:
            raise process.failure(server, allocator, log)
        return Run(allocator.name, number, [*throughput, *held, settled_memory(server.pid)], source)


def _ask(socket: Path, *words: str) -> str:
    command = [process.find("redis-cli", "redis-tools"), "-s", str(socket), *words]
    return subprocess.run(command, env=process.plain(), capture_output=True, text=True).stdout.strip()


def _wait_until_up(server: subprocess.Popen, allocator: Allocator, socket: Path, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while _ask(socket, "ping") != "PONG":
        if server.poll() is not None or time.monotonic() > deadline:
            raise process.failure(server, allocator, log)
        time.sleep(0.05)


def _benchmark(server, allocator: Allocator, socket: Path, log: Path, requests: int) -> list[Figure]:
    done = subprocess.run(redis.benchmark(str(socket), requests), env=process.plain(), capture_output=True, text=True)
    if done.returncode or server.poll() is not None:
        if server.poll() is not None:
            raise process.failure(server, allocator, log)
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise Problem(f"redis-benchmark under {allocator.name}: {lines[-1] if lines else 'failed'}", process.FAILED)
    figures = [Figure(name, rate, "requests/s", THROUGHPUT) for name, rate in redis.rates(done.stdout)]
    if not figures:
        raise Problem(f"redis-benchmark under {allocator.name} measured nothing", process.FAILED)
    return figures
