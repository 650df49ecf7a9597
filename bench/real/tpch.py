"""tpch.py DATA QUERIES THREADS ANSWERS: TPC-H on DuckDB in memory. Loads the tables, runs the 22 queries once cold and once
measured, and compares each answer with ANSWERS, which the first run of the same data writes."""

import json
import os
import sys
import time
from pathlib import Path

import duckdb
import tpch_shared


def main() -> None:
    data, answers = Path(os.path.realpath(sys.argv[1])), Path(os.path.realpath(sys.argv[4]))
    queries, threads = Path(sys.argv[2]), int(sys.argv[3])
    scale = f"{int(data.name) / 1000:g}"
    words = tpch_shared.queries(queries, scale)
    db = duckdb.connect(":memory:", config={"threads": threads})
    begun = time.perf_counter()
    for table in tpch_shared.TABLES:
        db.execute(f"CREATE TABLE {table} AS SELECT * FROM '{data}/{table}.parquet'")
    figures = {"load_seconds": time.perf_counter() - begun}
    found, total = [], 0.0
    for number, query in enumerate(words, 1):
        db.execute(query).fetchall()
        begun = time.perf_counter()
        rows = db.execute(query).fetchall()
        figures[f"q{number}_seconds"] = time.perf_counter() - begun
        total += figures[f"q{number}_seconds"]
        found.append(tpch_shared.plain(rows))
    if not answers.exists():
        tpch_shared.write(answers, scale, found)
    check = tpch_shared.check(found, tpch_shared.read(answers)[1])
    print(json.dumps({"seconds": total, "operations": len(words), "answers": sum(bool(one) for one in found), **figures, "check": check}))


main()
