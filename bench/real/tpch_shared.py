"""What the engines of TPC-H share: the tables, the queries, and whether two engines' answers are the same."""

import json
import math
import os
from decimal import Decimal, InvalidOperation
from pathlib import Path

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
# The columns by which each query orders its rows; rows with the same may come in any order.
_ORDER: tuple[tuple[int, ...], ...] = (
    (0, 1), (0, 2, 1, 3), (1, 2), (0,), (1,), (), (0, 1, 2), (0,), (0, 1), (2,), (1,), (0,),
    (1, 0), (), (0,), (3, 0, 1, 2), (), (4, 3), (), (0,), (1, 0), (0,),
)  # fmt: skip
_CLOSE = 1e-9  # of floating-point sums, whose order threads decide

Rows = list[list]


def queries(path: Path, scale: str) -> list[str]:
    text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("--"))
    return [one.strip().replace("{scale}", scale) for one in text.split(";") if one.strip()]


def plain(rows: list[tuple]) -> Rows:
    """As JSON keeps them: floating point as numbers, all else as text."""
    return [[one if isinstance(one, float) else str(one) for one in row] for row in rows]


def write(path: Path, scale: str, found: list[Rows]) -> None:
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps({"scale": scale, "answers": found}))
    part.rename(path)


def read(path: Path) -> tuple[str, list[Rows]]:
    content = json.loads(path.read_text())
    return content["scale"], content["answers"]


def check(found: list[Rows], wanted: list[Rows]) -> str:
    """'ok', or which answers are others."""
    if len(found) != len(_ORDER) or len(wanted) != len(_ORDER) or not any(found):
        return f"{len(found)} answers, {sum(map(bool, found))} with rows"
    wrong = [
        str(number) for number, (one, other, order) in enumerate(zip(found, wanted, _ORDER, strict=True), 1) if not _same(one, other, order)
    ]
    return f"other answers to {', '.join(wrong)}" if wrong else "ok"


def _same(one: Rows, other: Rows, order: tuple[int, ...]) -> bool:
    keys = ([[row[column] for column in order] for row in rows] for rows in (one, other))
    return _equal(*keys) and _equal(sorted(one, key=_exact_first), sorted(other, key=_exact_first))


def _equal(one: Rows, other: Rows) -> bool:
    return len(one) == len(other) and all(
        len(row) == len(also) and all(map(_cell, row, also)) for row, also in zip(one, other, strict=True)
    )


def _exact_first(row: list) -> tuple[list, list]:
    """Text decides before numbers, which may be rounded: the queries' rows differ in text or have one number alone."""
    numbers = [_number(one) for one in row]
    return [str(one) for one, number in zip(row, numbers, strict=True) if number is None], [one for one in numbers if one is not None]


def _cell(one: object, other: object) -> bool:
    """Exact numbers are equal; of one that is floating point so many digits as the other has."""
    if one == other:
        return True
    left, right = _number(one), _number(other)
    if left is None or right is None:
        return False
    if not isinstance(one, float) and not isinstance(other, float):
        return left == right
    ends = [Decimal(1).scaleb(number.as_tuple().exponent) for number, cell in ((left, one), (right, other)) if not isinstance(cell, float)]  # type: ignore[arg-type]
    return math.isclose(left, right, rel_tol=_CLOSE, abs_tol=float(max(ends, default=0)))


def _number(cell: object) -> Decimal | None:
    try:
        number = Decimal(repr(cell) if isinstance(cell, float) else str(cell))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
