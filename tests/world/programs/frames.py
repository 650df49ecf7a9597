"""Tables in three libraries, handed from one to the other and through files."""

import numpy
import pandas
import polars
import pyarrow
import pyarrow.compute
import pyarrow.parquet

rows = 300_000
keys = numpy.arange(rows) * 7919 % 1009
frame = pandas.DataFrame({"k": keys, "v": numpy.arange(rows) % 977, "s": [f"w{i % 5003}" for i in range(rows)]})
print(frame.groupby("k")["v"].sum().head(3).tolist(), frame["s"].nunique())
print(frame.merge(frame.iloc[:1000], on="k").shape)
table = pyarrow.Table.from_pandas(frame)
pyarrow.parquet.write_table(table, "t.parquet", compression="zstd")
again = pyarrow.parquet.read_table("t.parquet")
print(again.equals(table), pyarrow.compute.sum(again["v"]).as_py())
lazy = polars.scan_parquet("t.parquet").group_by("s").agg(polars.col("v").sum(), polars.len()).sort("s")
print(lazy.collect().head(3).rows())
print(polars.from_arrow(again).join(polars.from_pandas(frame.iloc[:500]), on="k").height)
frame.to_csv("t.csv", index=False)
print(polars.read_csv("t.csv").select(polars.col("v").sum()).item(), len(pandas.read_csv("t.csv")))
del frame, table, again
print(polars.read_csv("t.csv").sort("s", "v", "k").row(1000))
