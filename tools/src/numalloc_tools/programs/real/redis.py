"""redis-server under redis-benchmark."""

import csv
import shutil
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.allocators.beside import on_the_systems_malloc
from numalloc_tools.launch.launcher import Ended, Running
from numalloc_tools.programs import Work
from numalloc_tools.programs.in_lab import InLab
from numalloc_tools.programs.real.server import LoadFailed, answer, served, temporary_folder

NAME, FAMILY, THREADS, QUICK = "redis", "servers", (1, 2, 4), False
DESCRIPTION = (
    "redis-server with this number of I/O threads under redis-benchmark: strings, lists, sets, hashes; memory settles after flushall"
)
NEEDS = {"redis-server": "redis-server", "redis-benchmark": "redis-tools", "redis-cli": "redis-tools"}
_REQUESTS = 40_000  # of each kind
_COMMANDS = "set,get,incr,lpush,lpop,sadd,hset,zadd,mset"


def server(socket: str, *more: str) -> list[str]:
    return ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", *more]


def benchmark(socket: str, requests: int) -> list[str]:
    words = ["-n", requests, "-c", 50, "-P", 16, "-d", 128, "-r", max(1, requests // 2), "-t", _COMMANDS, "--csv"]
    return ["redis-benchmark", "-s", socket, *map(str, words)]


def rates(text: str) -> list[tuple[str, float]]:
    """The results of redis-benchmark for each kind of request: its name, and the rate per second."""
    return [(row[0], float(row[1])) for row in csv.reader(text.splitlines()) if len(row) > 1 and row[0] != "test"]


def _adapted(allocator: Allocator) -> Allocator:
    return on_the_systems_malloc(allocator, shutil.which("redis-server") or "")


def _in_lab(threads: int, requests: int) -> dict[str, list[str]]:
    serve = ["measured", *server("socket", "--io-threads", str(threads), "--logfile", "log")]
    return {"serve": serve, "benchmark": benchmark("socket", requests)}


LAB = InLab("redis", _REQUESTS, 1000, tuple(NEEDS), adapt=_adapted, words=_in_lab)


def run(allocator: Allocator, work: Work) -> Ended:
    requests = max(1000, round(_REQUESTS * work.scale))
    with temporary_folder() as name:
        socket = str(Path(name, "socket"))
        cli = ["redis-cli", "-s", socket]

        def ready() -> bool:
            try:
                return answer([*cli, "ping"]).strip() == "PONG"
            except LoadFailed:
                return False

        def load() -> tuple[int, float]:
            found = [rate for _, rate in rates(answer(benchmark(socket, requests), work.limit))]
            if not found or not all(found):
                raise LoadFailed("redis-benchmark measured nothing")
            _check(cli)
            return requests * len(found), sum(requests / rate for rate in found)

        def stop(running: Running) -> None:
            answer([*cli, "shutdown", "nosave"])

        return served(
            server(socket, "--io-threads", str(work.threads)),
            _adapted(allocator),
            work,
            Path(name),
            ready,
            load,
            lambda: answer([*cli, "flushall", "sync"]),
            stop,
        )


def _check(cli: list[str]) -> None:
    value = "value " * 50
    answer([*cli, "set", "check", value])
    if answer([*cli, "get", "check"]).rstrip("\n") != value:
        raise LoadFailed("redis returned a wrong value")
