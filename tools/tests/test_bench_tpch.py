"""TPC-H of bench/real: how answers of two engines are compared, what psql says, and all 22 queries on each engine, tiny."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from numalloc_tools.bench import manifest
from numalloc_tools.bench.allocators import Allocator
from numalloc_tools.bench.programs import Work

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT / "bench/real"
sys.path.insert(0, str(REAL))
import tpch_postgres  # noqa: E402
import tpch_shared  # noqa: E402

# Query 3 has the columns key, revenue, date, priority, and is ordered by revenue and date; 14 is one number.
THIRD, FOURTEENTH = 2, 13
FILLED = [[["x"]]] * 22


def answers(number: int, rows: list[list]) -> list[list[list]]:
    rest = [[[str(column) for column in range(8)]]] * 22
    return [*rest[:number], rows, *rest[number + 1 :]]


@pytest.mark.parametrize(
    ("number", "one", "other"),
    [
        (THIRD, [["7", "1.5000", "1995-01-01", "0"]], [["7", "1.50", "1995-01-01", "0"]]),
        (
            THIRD,
            [["7", "2", "1995-01-01", "0"], ["8", "2", "1995-01-01", "0"]],
            [["8", "2", "1995-01-01", "0"], ["7", "2", "1995-01-01", "0"]],
        ),
        (FOURTEENTH, [[16.380778626395543]], [["16.3807786263955401"]]),
        (FOURTEENTH, [[16.380778626395543]], [[16.380778626395547]]),
        (FOURTEENTH, [["16.38"]], [[16.380778626395543]]),
        (FOURTEENTH, [["None"]], [["None"]]),
    ],
)
def test_same_answers_are_the_same(number, one, other):
    assert tpch_shared.check(answers(number, one), answers(number, other)) == "ok"
    assert tpch_shared.check(answers(number, other), answers(number, one)) == "ok"


@pytest.mark.parametrize(
    ("number", "one", "other"),
    [
        (THIRD, [["7", "1.5001", "1995-01-01", "0"]], [["7", "1.50", "1995-01-01", "0"]]),
        (
            THIRD,
            [["7", "3", "1995-01-01", "0"], ["8", "2", "1995-01-01", "0"]],
            [["8", "2", "1995-01-01", "0"], ["7", "3", "1995-01-01", "0"]],
        ),
        (THIRD, [["7", "2", "1995-01-01", "0"], ["7", "2", "1995-01-01", "0"]], [["7", "2", "1995-01-01", "0"]]),
        (FOURTEENTH, [[16.380778626395543]], [["16.3807796263955401"]]),
        (FOURTEENTH, [[16.380778626395543]], [[16.3807796]]),
        (FOURTEENTH, [["16.40"]], [[16.380778626395543]]),
        (FOURTEENTH, [["None"]], [["0"]]),
        (FOURTEENTH, [], [[16.38]]),
    ],
)
def test_other_answers_are_told_by_their_query(number, one, other):
    assert tpch_shared.check(answers(number, one), answers(number, other)) == f"other answers to {number + 1}"
    assert tpch_shared.check(answers(number, other), answers(number, one)) == f"other answers to {number + 1}"


def test_too_few_answers_are_no_answers():
    assert tpch_shared.check(FILLED[:21], FILLED) == "21 answers, 21 with rows"
    assert tpch_shared.check([[]] * 22, [[]] * 22) == "22 answers, 0 with rows"


def test_there_are_22_queries_and_one_knows_the_scale():
    queries = tpch_shared.queries(REAL / "tpch.sql", "0.25")
    assert len(queries) == 22
    assert [number for number, query in enumerate(queries, 1) if "0.0001 / 0.25" in query] == [11]


def test_what_psql_says_is_rows_and_seconds():
    begin = tpch_postgres._BEGIN
    said = f'{begin}\n1,"a, ""b""",None\nTime: 1234.500 ms (00:01.235)\n{begin}\nTime: 0.250 ms\n'
    assert tpch_postgres.read(said) == ([[["1", 'a, "b"', "None"]], []], [1.2345, 0.00025])
    with pytest.raises(ValueError, match="no time"):
        tpch_postgres.read(f"{begin}\n1\n")


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    """The programs of tpch.toml at a hundredth of a gigabyte, with a copy of the queries that a test may change."""
    packages = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", tmp_path_factory.mktemp("wheel"), "tpchgen-cli==4.0.0"],
        capture_output=True,
        text=True,
    )
    if packages.returncode:
        pytest.skip(f"no packages from PyPI here: {(packages.stderr.strip().splitlines() or [''])[-1]}")
    # Not in pytest's folder: the user postgres reads the queries.
    with tempfile.TemporaryDirectory(prefix="numalloc-test-") as name, pytest.MonkeyPatch.context() as patch:
        folder, source = Path(name), Path(name, "real")
        folder.chmod(0o755)
        source.mkdir()
        for file in REAL.glob("tpch*"):
            shutil.copy(file, source)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield source, {one.name: one for one in manifest.programs([source / "tpch.toml"], set())}


@pytest.mark.xdist_group("tpch")  # one environment and one cluster for all
@pytest.mark.parametrize("name", ["tpch-duckdb", "tpch-postgres", "tpch-monetdb"])
def test_engine_gives_duckdbs_answers(name, engines):
    source, programs = engines
    if programs[name].missing:
        pytest.skip(programs[name].missing)
    ended = programs[name].run(Allocator("glibc"), Work(2, 0.1, limit=300))
    assert (ended.status, ended.reason) == ("ok", "")
    each = [ended.figures[f"q{number}_seconds"] for number in range(1, 23)]
    assert ended.figures["seconds"] == pytest.approx(sum(each)) and min(each) > 0
    assert json.loads((source.parent / "cache/numalloc/programs/tpch/10/answers").read_text())["scale"] == "0.01"
    assert ended.figures["operations"] == 22 and ended.figures["peak_bytes"] > 10 << 20
    text = (source / "tpch.sql").read_text()
    try:  # the answers were made before
        (source / "tpch.sql").write_text(text.replace("'BUILDING'", "'MACHINERY'").replace("0.05 AND 0.07", "0.05 AND 0.06"))
        ended = programs[name].run(Allocator("glibc"), Work(2, 0.1, limit=300))
    finally:
        (source / "tpch.sql").write_text(text)
    assert ended.status in ("wrong", "failed") and re.search("other answers to 3, 6$", ended.reason), ended
