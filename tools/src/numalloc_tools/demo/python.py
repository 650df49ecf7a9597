"""The Python interpreter, told to use malloc for every object instead of its own pools."""

import json
import subprocess
import sys
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.demo import process
from numalloc_tools.demo.measurement import THROUGHPUT, Figure, Run, after_work, settled_memory

NAME = "python"
REQUESTS = 20_000
ABOUT = "{requests:,} documents through json, as many lines compiled, objects, threads; PYTHONMALLOC=malloc"
_WORK = Path(__file__).with_name("python_work.py")


def program() -> str:
    return sys.executable


def run(allocator: Allocator, number: int, requests: int, folder: Path) -> Run:
    log = folder / "log"
    command = [program(), "-s", "-S", str(_WORK), str(requests)]
    with process.started(
        command, allocator, log, env={"PYTHONMALLOC": "malloc"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as python:
        assert python.stdin and python.stdout  # pipes
        figures = []
        for line in python.stdout:
            if line == "full\n":
                break
            name, value, unit = json.loads(line)
            figures.append(Figure(name, value, unit, THROUGHPUT))
        else:
            raise process.failure(python, allocator, log)
        process.require_library(python, allocator)
        held, source = after_work(python.pid)
        python.stdin.write("drop\n")
        python.stdin.flush()
        if python.stdout.readline() != "settled\n":
            raise process.failure(python, allocator, log)
        return Run(allocator.name, number, [*figures, *held, settled_memory(python.pid)], source)
