"""Python with every object from malloc."""

import tempfile
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.launch.launcher import Ended
from numalloc_tools.programs import Work
from numalloc_tools.programs.real.command import measured

NAME, FAMILY, THREADS, QUICK = "python", "languages", (1,), True
DESCRIPTION = "JSON, dictionaries, trees of objects and strings under PYTHONMALLOC=malloc; prints a sum that must not change"
NEEDS = {"python3": "python3"}
_DOCUMENTS = 15_000
_TEXT = """
import json, sys, zlib
count, sum = int(sys.argv[1]), 0
class Node:
    __slots__ = ("left", "right", "value")
    def __init__(self, depth):
        self.value = str(depth)
        self.left = Node(depth - 1) if depth else None
        self.right = Node(depth - 1) if depth else None
kept = {}
for i in range(count):
    document = {"id": i, "tags": [f"tag-{i % 97}-{k}" for k in range(8)], "body": "text " * (i % 120),
                "nested": {str(k): {"x": k / 2, "y": [k] * 4} for k in range(6)}}
    text = json.dumps(document)
    sum = zlib.crc32(text.encode(), sum)
    kept[i % 4000] = json.loads(text)
    if i % 500 == 0: Node(11)
for i in range(count * 4):
    words = [f"{word}{i}" for word in ("alpha", "beta", "gamma", "delta")]
    sum = zlib.crc32(" ".join(reversed(words)).upper().encode(), sum)
print(sum, len(kept))
"""


def run(allocator: Allocator, work: Work) -> Ended:
    words = ["python3", "-s", "-S", "-c", _TEXT, str(max(50, round(_DOCUMENTS * work.scale)))]
    with tempfile.TemporaryDirectory(prefix="numalloc-bench-") as folder:
        return measured(words, allocator, work, Path(folder), "stdout", {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"})
