"""The work that the python of `numalloc demo` does; it imports nothing of the tools.

Prints a line for each figure, then `full` while it holds its data, and `settled` after it was told to
let go of them and has idled for a while.
"""

import gc
import json
import sys
import threading
import time
from pathlib import Path


def report(name: str, count: int, begun: float, unit: str) -> None:
    print(json.dumps([name, count / (time.perf_counter() - begun), unit]), flush=True)


def document(number: int) -> dict:
    return {
        "id": number,
        "name": f"document {number}",
        "tags": [f"tag-{number % 97}-{i}" for i in range(8)],
        "body": "text " * (number % 120),
        "nested": {str(i): {"x": i * 0.5, "y": [i] * 4} for i in range(6)},
    }


class Node:
    __slots__ = ("left", "right", "value")

    def __init__(self, depth: int):
        self.value = str(depth)
        self.left = Node(depth - 1) if depth else None
        self.right = Node(depth - 1) if depth else None


def compile_modules(lines: int) -> None:
    sources = sorted(Path(json.__file__).parent.parent.glob("*.py"))[:60]
    texts = [source.read_text(errors="replace") for source in sources]
    begun, done = time.perf_counter(), 0
    while done < lines:
        for text in texts:
            compile(text, "module", "exec")
            done += text.count("\n")
            if done >= lines:
                break
    report("compile", done, begun, "lines/s")


def split_and_join(rounds: int) -> None:
    for i in range(rounds):
        words = [f"{word}{i}" for word in ("alpha", "beta", "gamma", "delta") * 8]
        " ".join(reversed(words)).upper().split()


def main() -> None:
    requests = int(sys.argv[1])
    begun = time.perf_counter()
    data = [json.loads(json.dumps(document(i))) for i in range(requests)]
    report("json", requests, begun, "documents/s")
    begun, trees = time.perf_counter(), max(1, requests // 1000)
    for _ in range(trees):
        Node(12)
    report("objects", trees * 8191, begun, "objects/s")
    compile_modules(requests)
    begun = time.perf_counter()
    threads = [threading.Thread(target=split_and_join, args=(requests // 4,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report("four threads", requests // 4 * 4, begun, "rounds/s")
    print("full", flush=True)
    sys.stdin.readline()
    data.clear()
    gc.collect()
    for _ in range(30):  # a program that goes on with little to do
        time.sleep(0.1)
    print("settled", flush=True)
    sys.stdin.readline()


main()
