"""Joins and groups on two threads, spills, and hands tables to pandas."""

import duckdb

db = duckdb.connect("t.duckdb", config={"threads": 2, "memory_limit": "400MB"})
db.execute("create table t as select i, i * 7919 % 100003 k, md5(i::varchar) s from range(1000000) r(i)")
print(db.execute("select count(*), sum(k), min(s), max(s) from t").fetchall())
print(db.execute("select k % 10 g, count(distinct s), avg(k) from t group by g order by g").fetchall())
print(db.execute("select count(*) from t a join t b on a.k = b.k and a.i < b.i").fetchall())
frame = db.execute("select * from t order by s limit 1000").df()
print(frame.shape, frame["i"].sum())
db.execute("copy t to 't.parquet'")
print(db.execute("select sum(i) from 't.parquet'").fetchall())
