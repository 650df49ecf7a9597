"""tpch.py DATA QUERIES THREADS ANSWERS: TPC-H on DuckDB in memory. Loads the tables, runs the 22 queries once cold and once
measured, and compares each answer with ANSWERS, which the first run of the same data writes."""

import json
import os
import sys
import time
from pathlib import Path

import duckdb

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
_DIGITS = 9  # of floating-point sums, whose order threads decide


def text_of(rows: list[tuple]) -> list[list[str]]:
    return [[f"{one:.{_DIGITS}g}" if isinstance(one, float) else str(one) for one in row] for row in rows]


def main() -> None:
    data, answers = Path(os.path.realpath(sys.argv[1])), Path(os.path.realpath(sys.argv[4]))
    queries, threads = Path(sys.argv[2]), int(sys.argv[3])
    text = "\n".join(line for line in queries.read_text().splitlines() if not line.startswith("--"))
    scale = data.name.removeprefix("sf")
    words = [one.strip().replace("{scale}", scale) for one in text.split(";") if one.strip()]
    db = duckdb.connect(":memory:", config={"threads": threads})
    begun = time.perf_counter()
    for table in TABLES:
        db.execute(f"CREATE TABLE {table} AS SELECT * FROM '{data}/{table}.parquet'")
    figures = {"load_seconds": time.perf_counter() - begun}
    found, total = [], 0.0
    for number, query in enumerate(words, 1):
        db.execute(query).fetchall()
        begun = time.perf_counter()
        rows = db.execute(query).fetchall()
        figures[f"q{number}_seconds"] = time.perf_counter() - begun
        total += figures[f"q{number}_seconds"]
        found.append(text_of(rows))
    if not answers.exists():
        part = answers.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(found))
        part.rename(answers)
    wanted = json.loads(answers.read_text())
    wrong = [str(number) for number, (one, other) in enumerate(zip(found, wanted, strict=True), 1) if one != other]
    check = f"other answers to {', '.join(wrong)}" if wrong else "ok"
    if len(found) != 22 or not any(found):
        check = f"{len(found)} queries"
    print(json.dumps({"seconds": total, "operations": len(words), "answers": sum(bool(one) for one in found), **figures, "check": check}))


main()
