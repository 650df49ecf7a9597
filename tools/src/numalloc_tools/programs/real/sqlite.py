"""SQLite in one process with several threads: half of them write, the others read."""

import tempfile
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.launch.launcher import Ended, Running
from numalloc_tools.programs import Work, judged
from numalloc_tools.programs.in_lab import InLab

NAME, FAMILY, THREADS, QUICK = "sqlite", "databases", (2, 4, 8), True
DESCRIPTION = (
    "threads of one process write and read a database in WAL mode with Python's own module; at the end the rows are counted and checked"
)
NEEDS = {"python3": "python3"}
_ROWS = 60_000
# In the lab, a C program does this: the guest has no Python.
LAB = InLab(
    "sqlite",
    _ROWS,
    1000,
    source="sqlite-threads",
    link=("-Wl,--no-as-needed", "-lsqlite3"),
    needs={"/usr/include/sqlite3.h": "libsqlite3-dev"},
)
_TEXT = """
import json, sqlite3, sys, threading, time
threads, rows = int(sys.argv[1]), int(sys.argv[2])
def connect():
    db = sqlite3.connect("database", timeout=60, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL"); db.execute("PRAGMA synchronous = OFF")
    return db
setup = connect()
setup.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, writer INT, name TEXT, body TEXT)")
setup.execute("CREATE INDEX by_name ON t(name)")
writers, failures, read = (threads + 1) // 2, [], [0] * threads
each = rows // writers
def write(me):
    db = connect()
    for first in range(0, each, 500):
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO t(writer, name, body) VALUES (?, ?, ?)",
            ((me, f"name {(i * 7919) % 10007}", f"{i} " * (i % 60)) for i in range(first, min(first + 500, each))))
        db.execute("COMMIT")
def look(me):
    db = connect()
    for i in range(each // 40):
        found = db.execute("SELECT name, length(body), json_object('n', name, 'b', body) FROM t WHERE name = ? LIMIT 40", (f"name {i * 31 % 10007}",)).fetchall()
        read[me] += len(found)
        if any(row[0] != f"name {i * 31 % 10007}" for row in found): failures.append(me)
        if i % 100 == 0: db.execute("SELECT writer, count(*), max(name), group_concat(substr(body, 1, 3)) FROM t GROUP BY writer").fetchall()
def guarded(body, me):
    try: body(me)
    except Exception as error: failures.append(repr(error))
begun = time.perf_counter()
team = [threading.Thread(target=guarded, args=(write if i % 2 == 0 else look, i)) for i in range(threads)]
for thread in team: thread.start()
for thread in team: thread.join()
seconds = time.perf_counter() - begun
wanted = sum(len(f"{i} ") * (i % 60) for i in range(each)) * writers
got = setup.execute("SELECT count(*), sum(length(body)) FROM t").fetchone()
right = not failures and got == (each * writers, wanted) and setup.execute("PRAGMA integrity_check").fetchone() == ("ok",)
print(json.dumps({"operations": each * writers + sum(read), "seconds": seconds, "check": "ok" if right else f"{failures[:3]} {got}"}))
"""


def run(allocator: Allocator, work: Work) -> Ended:
    rows = max(1000, round(_ROWS * work.scale))
    with tempfile.TemporaryDirectory(prefix="numalloc-bench-") as folder:
        words = ["python3", "-s", "-S", "-c", _TEXT, str(work.threads), str(rows)]
        running = Running(words, allocator, work.limit, Path(folder), work.sample)
        try:
            return judged(running.end())
        except BaseException:
            running.stop()
            raise
