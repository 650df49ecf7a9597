"""places.py COMMAND...: who knows the address of an object does not know where metadata is, nor from one part of it where another
is. The command prints the distance of each part; twenty processes have twenty others each, over some hundred GiB."""

import subprocess
import sys
from pathlib import Path

if Path("/proc/sys/kernel/randomize_va_space").read_text().strip() == "0":
    print("skipped: the kernel does not randomise addresses")
    sys.exit(77)

PROCESSES = 20
PARTS = 5  # class map, thread heaps, bag marks, bag table, NodeHeap: each a stretch by itself, and none joined to bags


def distances():
    done = subprocess.run(sys.argv[1:], capture_output=True, text=True, check=True, timeout=60)
    return [int(word) for word in done.stdout.split()]


def spread(values):
    return max(values) - min(values)


runs = [distances() for _ in range(PROCESSES)]
assert all(len(run) == PARTS for run in runs), runs
for part in range(PARTS):
    from_object = [run[part] for run in runs]
    print(f"part {part}: {len(set(from_object))} distances from the object, over {spread(from_object) >> 30} GiB")
    assert len(set(from_object)) == PROCESSES
    assert spread(from_object) > 100 << 30
for part in range(1, PARTS):
    between = [run[part] - run[part - 1] for run in runs]
    print(f"part {part - 1} to {part}: {len(set(between))} distances, over {spread(between) >> 20} MiB")
    assert len(set(between)) >= PROCESSES - 1
