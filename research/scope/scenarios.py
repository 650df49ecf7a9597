"""What `research figures` runs: the programs of bench/, with as much work as an emulator can bear."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    name: str
    program: str  # of bench/programs.json
    scale: float
    words: tuple[str, ...]  # besides --threads and --scale
    memory: str = "512M"  # of a node


def _of(program: str, scale: float, *words: str, memory: str = "512M", name: str = "") -> Scenario:
    return Scenario(name or program, program, scale, words, memory)


# larson's threads hand over more often than at scale 1, so that there are generations. "-own": the threads set up
# their objects or records themselves, else main does, and what it has set up is remote to most of them.
ALL = (
    _of("threadtest", 0.02),
    _of("larson", 0.2, "--lifetime", "20000"),
    _of("larson", 0.2, "--lifetime", "20000", "--first", "2", name="larson-own"),
    _of("cache-scratch", 0.02),
    _of("cache-thrash", 0.02),
    _of("producer-consumer", 0.05),
    _of("exchange", 0.05),
    _of("generations", 0.05),
    _of("hash-maps", 0.1),
    _of("json-trees", 0.05),
    _of("trees", 0.05),
    _of("lists", 0.05),
    _of("strings", 0.05),
    _of("server", 0.05),
    _of("growing-arrays", 0.05),
    _of("allocator-study", 0.05),
    _of("amd-numa", 0.01, memory="1G"),
    _of("group-median", 0.03, "--input", "threads", name="group-median-own"),
    _of("group-count", 0.2),
    _of("group-count", 0.2, "--input", "threads", name="group-count-own"),
    _of("hash-join", 0.05),
    _of("index-join", 0.05),
    _of("point-clusters", 0.06, "--chunk", "2048"),
    _of("ray-casting", 0.15),
    _of("multigrid", 0.06),
)
# As parts of the scale above: larson takes longest, and each program runs 56 times. Not larson-own: that sets up as
# many objects more as there are threads more, within the time that is counted.
SWEPT = {"threadtest": 1.0, "larson": 0.25, "cache-scratch": 1.0, "cache-thrash": 1.0}
THREADS = (1, 2, 4, 8, 16, 32, 64, 128)
# Remote lines below 1 % and nodes in balance are promised here.
PROMISED = (
    "larson",
    "larson-own",
    "threadtest",
    "producer-consumer",
    "hash-maps",
    "json-trees",
    "group-count",
    "group-count-own",
)
REMOTE_PROMISED, BALANCE_PROMISED = 0.01, 1.2
# Beside this machine's own times: they hardly wait or ask the system for anything. Whole runs, two threads on one node.
HOSTED = (
    _of("threadtest", 0.05),
    _of("larson", 0.05, "--lifetime", "20000", "--first", "2", name="larson-own"),
    _of("hash-maps", 0.2),
    _of("json-trees", 0.05),
)
HOST_THREADS, HOST_ROUNDS = 2, 5
PEERS = ("glibc", "jemalloc-new", "tcmalloc", "mimalloc3", "snmalloc", "rpmalloc")
