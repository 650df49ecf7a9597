"""tpch_monetdb.py LIBRARIES DATA QUERIES THREADS ANSWERS: TPC-H on MonetDB in memory, by the C interface of the library that
PyPI's monetdbe has. Loads the tables, runs the 22 queries once cold and once measured, and compares each answer with ANSWERS."""

import ctypes
import json
import os
import sys
import time
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_int8, c_int16, c_int32, c_int64, c_size_t, c_ubyte, c_void_p
from datetime import date
from decimal import Decimal
from pathlib import Path

import tpch_shared

_ORDER = ("stream", "mapi", "pcre", "bat", "monetdb5", "monetdbsql", "monetdbe")  # each finds those before it
_STRING, _DATE = 9, 11


class _Date(Structure):
    _fields_ = (("day", c_ubyte), ("month", c_ubyte), ("year", c_int16))


class _Large(Structure):
    _fields_ = (("low", ctypes.c_uint64), ("high", c_int64))


_TYPES = {1: c_int8, 2: c_int16, 3: c_int32, 4: c_int64, 5: _Large, 6: c_size_t, 7: ctypes.c_float, 8: c_double}
_TYPES |= {_STRING: c_char_p, _DATE: _Date}  # of monetdbe.h


class _Options(Structure):
    _fields_ = (
        ("memory_limit", c_int),
        ("query_timeout", c_int),
        ("session_timeout", c_int),
        ("threads", c_int),
        ("remote", c_void_p),
        ("mapi", c_void_p),
        ("trace", c_char_p),
    )


class _Result(Structure):
    _fields_ = (("rows", c_int64), ("columns", c_size_t), ("name", c_char_p), ("last", c_int64))


class _Column(Structure):
    """What follows depends on the type: the value that means NULL, and the power of ten that decimals are multiplied by."""

    _fields_ = (("type", c_int), ("data", c_void_p), ("count", c_size_t), ("name", c_char_p))


class Database:
    def __init__(self, folder: Path, threads: int):
        for name in _ORDER:
            self._library = ctypes.CDLL(str(next(folder.glob(f"lib{name}-*"))), ctypes.RTLD_GLOBAL)
        for function in ("query", "result_fetch", "cleanup_result"):
            getattr(self._library, f"monetdbe_{function}").restype = c_char_p
        self._handle = c_void_p()
        if self._library.monetdbe_open(byref(self._handle), None, byref(_Options(threads=threads))):
            sys.exit("MonetDB cannot be opened")

    def query(self, text: str) -> list[tuple]:
        result = POINTER(_Result)()
        self._good(self._library.monetdbe_query(self._handle, text.encode(), byref(result), None))
        if not result:
            return []
        columns = [self._column(result, number) for number in range(result.contents.columns)]
        self._good(self._library.monetdbe_cleanup_result(self._handle, result))
        return list(zip(*columns, strict=True))

    def _column(self, result, number: int) -> list:
        found = POINTER(_Column)()
        self._good(self._library.monetdbe_result_fetch(result, byref(found), c_size_t(number)))
        column, kind = found.contents, _TYPES[found.contents.type]
        cells = ctypes.cast(column.data, POINTER(kind))[: column.count]
        if column.type == _STRING:
            return [cell and cell.decode() for cell in cells]
        if column.type == _DATE:
            return [date(cell.year, cell.month, cell.day) for cell in cells]
        after = ctypes.addressof(column) + ctypes.sizeof(_Column)
        null = _number(kind.from_address(after))
        scale = c_double.from_address(after + max(8, ctypes.sizeof(kind))).value
        numbers = map(_number, cells)
        return [None if one == null else Decimal(one) / int(scale) if scale > 1 else one for one in numbers]

    @staticmethod
    def _good(trouble: bytes | None) -> None:
        if trouble:
            sys.exit(f"MonetDB: {trouble.decode(errors='replace').strip()}")


def _number(cell):
    if isinstance(cell, _Large):
        return (cell.high << 64) + cell.low
    return getattr(cell, "value", cell)


def main() -> None:
    libraries, data, queries = Path(sys.argv[1]), Path(os.path.realpath(sys.argv[2])), Path(sys.argv[3])
    scale, wanted = tpch_shared.read(Path(sys.argv[5]))
    words = tpch_shared.queries(queries, scale)
    db = Database(libraries, int(sys.argv[4]))
    begun = time.perf_counter()
    for table in tpch_shared.queries(queries.with_name("tpch_tables.sql"), scale):
        db.query(f"{table};")
    for table in tpch_shared.TABLES:
        db.query(f"COPY OFFSET 2 INTO {table} FROM '{data}/{table}.csv' USING DELIMITERS ',', E'\\n', '\"';")
    figures = {"load_seconds": time.perf_counter() - begun}
    found, total = [], 0.0
    for number, query in enumerate(words, 1):
        db.query(f"{query};")
        begun = time.perf_counter()
        rows = db.query(f"{query};")
        figures[f"q{number}_seconds"] = time.perf_counter() - begun
        total += figures[f"q{number}_seconds"]
        found.append(tpch_shared.plain(rows))
    check = tpch_shared.check(found, wanted)
    print(json.dumps({"seconds": total, "operations": len(words), "answers": sum(map(bool, found)), **figures, "check": check}))


if __name__ == "__main__":
    main()
