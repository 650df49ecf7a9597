"""tpch_postgres.py FOLDER QUERIES: TPC-H on the PostgreSQL whose socket, cluster and DuckDB's answers are in FOLDER. One
session runs the 22 queries once unmeasured, while the memory of the server's processes is looked at, and once measured."""

import csv
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import tpch_shared

_SAMPLE = 0.05  # seconds
_BEGIN = "=== query "


def script(queries: list[str], mark: Path) -> str:
    lines = ["\\pset format csv", "\\pset tuples_only on", "\\pset null None", "\\o /dev/null"]
    lines += [f"{query};" for query in queries]
    lines += ["\\o", f"\\! touch {mark}"]
    for query in queries:
        lines += [f"\\echo '{_BEGIN}'", "\\timing on", f"{query};", "\\timing off"]
    return "\n".join(lines) + "\n"


def read(said: str) -> tuple[list[tpch_shared.Rows], list[float]]:
    """Rows and seconds of each query."""
    rows, seconds = [], []
    for part in said.split(_BEGIN)[1:]:
        lines = [line for line in part.splitlines()[1:] if not line.startswith("Timing is ")]
        found = re.fullmatch(r"Time: ([\d.]+) ms.*", lines.pop())
        if not found:
            raise ValueError("psql said no time")
        seconds.append(float(found[1]) / 1000)
        rows.append([list(row) for row in csv.reader(lines)])
    return rows, seconds


def memory(postmaster: int) -> tuple[int, int]:
    """Bytes of the server's processes, each page once: of all kinds, and of what is no file's nor shared."""
    everything, anonymous = 0, 0
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    for pid in (str(postmaster), *children):
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:  # it has just ended
            continue
        for line in text.splitlines():
            name, _, value = line.partition(":")
            everything += int(value.split()[0]) << 10 if name == "Pss" else 0
            anonymous += int(value.split()[0]) << 10 if name == "Pss_Anon" else 0
    return everything, anonymous


def main() -> None:
    folder, queries = Path(sys.argv[1]), Path(sys.argv[2])
    scale, wanted = tpch_shared.read(folder / "answers")
    words = tpch_shared.queries(queries, scale)
    mark = folder / "measured"
    postmaster = int((folder / "cluster/postmaster.pid").read_text().split()[0])
    peaks = [0, 0]

    def look() -> None:
        while not mark.exists() and running.poll() is None:
            peaks[:] = map(max, peaks, memory(postmaster))
            time.sleep(_SAMPLE)

    command = ["psql", "-X", "-q", "-h", str(folder), "-U", "bench", "-d", "postgres", "-v", "ON_ERROR_STOP=1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        sampler = threading.Thread(target=look)
        sampler.start()
        said, _ = running.communicate(script(words, mark))
        sampler.join()
    if running.returncode:
        sys.exit(f"psql ended with status {running.returncode}: {(said.strip().splitlines() or [''])[-1]}")
    rows, seconds = read(said)
    figures = {f"q{number}_seconds": one for number, one in enumerate(seconds, 1)}
    figures |= {"peak_bytes": peaks[0], "anonymous_peak_bytes": peaks[1]} if peaks[0] else {}
    check = tpch_shared.check(rows, wanted)
    print(json.dumps({"seconds": sum(seconds), "operations": len(words), "answers": sum(map(bool, rows)), **figures, "check": check}))


if __name__ == "__main__":
    main()
