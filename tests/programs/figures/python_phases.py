"""python_phases.py PRELOAD LIBRARY none|some: a Python program in ten phases, each a fifth larger than the one before:
lists, dicts and strings grow, are dropped, and none or a tenth of them is kept. Its peak, and what it holds at the
end without another call, are at most ALLOWED of those with glibc's malloc: pages of metadata, and at the peak what was freed
within the last second and still rests (13 MiB; Python's own arenas grow beside it). Seen: 231 to 234 MiB, glibc 226 or 229,
as fast as the machine is and where the regions lie; with a purge_delay of 100 ms 226. With huge pages the top one's unused end
(HUGE_PAGE MiB) comes besides. A run that misses is one of three, whose medians count."""

import gc
import os
import random
import statistics
import subprocess
import sys

ALLOWED = 1.04
HUGE_PAGE = 2


def resident() -> list[float]:
    lines = open("/proc/self/status").read().splitlines()
    return [int(line.split()[1]) / 1024 for name in ("VmHWM:", "VmRSS:") for line in lines if line.startswith(name)]


def phases(keep_some: bool) -> None:
    random.seed(3)
    kept = []
    for phase in range(10):
        n = int(150_000 * 1.2**phase)
        numbers = []
        for i in range(n):
            numbers.append(i * 7)
        table = {}
        for i in range(n):
            table[i] = numbers[i]
        words = []
        for i in range(n // 10):
            words.append("abcdefgh" * (i % 50))
        text = "-".join(words)
        buffer = bytearray()
        for word in words:
            buffer += word.encode()
        rows = [[j for j in range(i % 300)] for i in range(n // 100)]  # noqa: C416  grown as programs grow them
        names = {f"k{i}": [i] for i in range(n // 3)}
        if keep_some:
            kept += [words[::10], numbers[: n // 10], rows[::10], {k: names[k] for k in list(names)[: n // 30]}]
        del numbers, table, words, text, buffer, rows, names
        gc.collect()
    print(*resident())


def run(library: str, what: str, huge_pages: str) -> list[float]:
    child = subprocess.run(
        [sys.argv[1], library, sys.executable, __file__, "", "", what, "child"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "0", "NUMALLOC_THP": huge_pages},
    )
    return [float(x) for x in child.stdout.split()]


if sys.argv[-1] == "child":
    phases(sys.argv[3] == "some")
    sys.exit(0)

theirs = run("none", sys.argv[3], "system")
missed = False
for huge_pages, more in (("system", 0), ("auto", HUGE_PAGE)):
    runs = [run(sys.argv[2], sys.argv[3], huge_pages)]
    if any(o > t * ALLOWED + more for o, t in zip(runs[0], theirs)):
        runs += [run(sys.argv[2], sys.argv[3], huge_pages) for _ in range(2)]
    ours = [statistics.median(figures) for figures in zip(*runs)]
    above = any(o > t * ALLOWED + more for o, t in zip(ours, theirs))
    print(
        f"thp={huge_pages}: peak {ours[0]:.0f} MiB, glibc {theirs[0]:.0f}; at the end {ours[1]:.0f}, glibc {theirs[1]:.0f}",
        "MISSED" if above else "",
    )
    missed |= above
sys.exit(missed)
