"""The sqlite3 shell with a database in memory."""

import subprocess
import time
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.demo import process
from numalloc_tools.demo.measurement import THROUGHPUT, Figure, Run, after_work, settled_memory

NAME = "sqlite"
REQUESTS = 200_000
ABOUT = "{requests:,} rows in memory: inserted, indexed, joined and grouped, turned to JSON, half replaced"
_ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {requests})"
_STATEMENTS = {
    "insert": "CREATE TABLE t(i INTEGER PRIMARY KEY, k TEXT, v TEXT);"
    + _ROWS
    + " INSERT INTO t SELECT i, printf('%08x', i * 2654435761 % 4294967296), substr(hex(zeroblob(100)), 1, i % 200) FROM n;",
    "index": "CREATE INDEX by_key ON t(k);",
    "group": "SELECT substr(a.k, 1, 3), count(*), group_concat(substr(b.v, 1, 5)) FROM t a JOIN t b ON b.i = a.i GROUP BY 1;",
    "json": "SELECT length(json_object('i', i, 'k', k, 'v', json_array(v, v))) FROM t;",
    "replace": "UPDATE t SET v = v || k WHERE i % 2;",
}
_EMPTY = "DROP TABLE t;"
_SETTLE = 30  # tenths of a second with a statement each


def program() -> str:
    return process.find("sqlite3", "sqlite3")


def run(allocator: Allocator, number: int, requests: int, folder: Path) -> Run:
    log = folder / "log"
    command = [program(), "-batch", "-bail", ":memory:"]
    with process.started(command, allocator, log, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sqlite:
        assert sqlite.stdin and sqlite.stdout  # pipes
        asked, answers = sqlite.stdin, sqlite.stdout

        def execute(statement: str) -> None:
            try:
                # The shell buffers its own output; a child's echo says when a statement is done.
                asked.write(f"{statement}\n.system echo done\n")
                asked.flush()
                if answers.readline() == "done\n":
                    return
            except BrokenPipeError:
                pass
            raise process.failure(sqlite, allocator, log)

        execute(".output /dev/null")
        process.require_library(sqlite, allocator)
        figures = []
        for name, statement in _STATEMENTS.items():
            begun = time.perf_counter()
            execute(statement.replace("{requests}", str(requests)))
            figures.append(Figure(name, requests / (time.perf_counter() - begun), "rows/s", THROUGHPUT))
        held, source = after_work(sqlite.pid)
        execute(_EMPTY)
        for _ in range(_SETTLE):
            time.sleep(0.1)
            asked.write("SELECT 1;\n")
            asked.flush()
        return Run(allocator.name, number, [*figures, *held, settled_memory(sqlite.pid)], source)
