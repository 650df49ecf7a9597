"""What `research scope` tells: tables, JSON and the page, from recorded counts."""

import io
import json
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console
from scope_counts import party, recorded, run

from research.scope import counts, drawing, hardware, tables
from research.scope.page import page
from research.scope.results import Results, Run

MACHINE = hardware.named("xeon-4x16")


def results(*runs: tuple, **settings) -> Results:
    """Allocator, threads, counts."""
    return Results(
        MACHINE,
        ["./larson", "--threads", "{threads}"],
        settings,
        [Run(name, threads, raw, MACHINE) for name, threads, raw in runs],
    )


@pytest.fixture
def two() -> Results:
    found = results(("glibc", 0, recorded(remote=9_000)), ("numalloc", 0, recorded()))
    found.runs.append(Run("snmalloc", 0, {}, MACHINE, "it was ended by signal 11"))
    return found


def shown(found: Results) -> str:
    out = io.StringIO()
    tables.show(Console(file=out, width=tables.WIDTH), found)
    return out.getvalue()


def test_remote_share_is_never_alone(two):
    text = shown(two)
    heading = next(line for line in text.splitlines() if " remote " in line)
    assert all(word in heading for word in ("modelled time", "memory lines", "remote", "of all", "fullest node", "most work"))
    glibc = next(line for line in text.splitlines() if line.lstrip().startswith("glibc"))
    # 4 x 1,000 at home and 9,000 of node 1's: 69.2 % remote, and 10,000 of 13,000 on node 1, which is 3.08 x the mean.
    for word in ("13 k", "9 k", "69.2 %", "3.08", "1.00"):
        assert f" {word} " in glibc
    assert "snmalloc: it was ended by signal 11" in text
    assert "take(int&)" in text and "0x48" in text
    assert "freed 24 B + 8, thread 2" in text and "no object; [heap]" in text


def test_the_allocator_s_lines_are_told_apart(two):
    rows = shown(two).partition("The allocator's own code")[2].splitlines()
    heading = next(line for line in rows if "own data" in line)
    columns = "instructions remote lines of objects of its own data kernel's instructions its remote lines"
    assert heading.split() == columns.split()
    glibc = next(line for line in rows if line.lstrip().startswith("glibc"))
    assert glibc.split() == "glibc 10 k 9 k 9 k 3 - -".split()


def test_what_was_not_watched_is_not_told_of():
    raw = recorded()
    del raw["allocator_data"]
    raw["parties"]["kernel"] = party(4, instructions=50_000, remote_transfers=12)
    raw["false_sharing"][0]["class"] = None
    raw["symbols"].append({"object": "[kernel]", "symbol": "-", **party(4, remote_fills=5)})
    found = results(("glibc", 0, raw))
    rows = shown(found).partition("The allocator's own code")[2].splitlines()
    assert next(line for line in rows if line.lstrip().startswith("glibc")).split() == "glibc 10 k 0 - - 50 k 12".split()
    assert "[kernel]" in shown(found)
    assert "no object" not in page(found, "glibc") and "0x48" in page(found, "glibc")


def test_the_order_may_hang_on_the_latencies(two):
    assert two.order_holds() and "The order of the allocators holds" in shown(two)
    few = run([0, 1], [{"instructions": 30_000}, {}])
    far = run([0, 1], [{"instructions": 10_000, "fills": [0, 100]}, {}])
    other = results(("a", 0, few), ("b", 0, far))
    seconds = [one.modelled.range for one in other.runs]
    assert seconds[1][0] < seconds[0][0] and seconds[1][1] > seconds[0][1]
    assert not other.order_holds() and "does not hold" in shown(other)


def test_json_holds_counts_and_model(two, tmp_path):
    two.write(tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    assert content["format"] == "numalloc-scope" and content["machine"]["name"] == "xeon-4x16"
    glibc, _, failed = content["runs"]
    assert counts.read(glibc["counts"]).fills == 13_000
    assert glibc["summary"]["remote_share"] == pytest.approx(9 / 13) and glibc["summary"]["memory_balance"] == pytest.approx(10 / 3.25)
    assert glibc["modelled"]["seconds"] == glibc["summary"]["modelled_seconds"] > 0
    assert failed["reason"] and "counts" not in failed


class _Links(HTMLParser):
    def __init__(self):
        super().__init__()
        self.fetched, self.sections, self.open = [], [], []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "section":
            self.sections.append(given["id"])
        if tag in ("script", "link", "img", "iframe", "object", "embed"):
            self.fetched.append((tag, given))
        self.fetched += [
            (tag, value) for name, value in given.items() if name in ("src", "href", "xlink:href") and not value.startswith(("#", "data:"))
        ]


def test_the_page_fetches_nothing_and_has_everything(two):
    text = page(two, "glibc")
    links = _Links()
    links.feed(text)
    assert links.fetched == [] and "@import" not in text and not re.search(r"url\((?!#)", text)
    for name in (
        "summary",
        "time",
        "memory",
        "caches",
        "parts",
        "allocator",
        "causes",
        "symbols-glibc",
        "sharing-numalloc",
        "failures",
        "machine",
    ):
        assert name in links.sections
    assert "speedup" not in links.sections, "there is one number of threads"
    assert "69.2 % of 13,000 remote" in text and "<td>larson</td>" in text and "take(int&amp;)" in text
    assert "modelled" in text and MACHINE.sources["distances"].replace("'", "&#x27;") in text


def test_speedup_is_over_the_baseline_with_the_fewest_threads():
    def work(share: int) -> dict:
        return run([0, 1], [{"instructions": 1_000_000 // share}, {}])

    found = results(("glibc", 1, work(1)), ("glibc", 4, work(2)), ("numalloc", 1, work(1)), ("numalloc", 4, work(4)))
    figure = drawing.speedup(found, "glibc")
    lines = {line.get_label(): list(line.get_ydata()) for line in figure.axes[0].get_lines()}
    assert lines["glibc"] == pytest.approx([1, 2]) and lines["numalloc"] == pytest.approx([1, 4])
    assert [one.threads for one in found.most_threads] == [4, 4]
    assert "speedup" in page(found, "glibc") and "glibc/4" in shown(found)


def test_heat_has_one_scale():
    figure = drawing.heat(results(("glibc", 0, recorded(remote=9_000)), ("numalloc", 0, recorded())).runs, "matrix")
    images = [image for ax in figure.axes for image in ax.get_images()]
    assert [image.get_clim() for image in images] == [(0, 9_000), (0, 9_000)]
    assert images[0].get_array().tolist()[0] == [1_000, 9_000, 0, 0]


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0"), (999, "999"), (1_000, "1 k"), (999_999, "1 M"), (12_345_678, "12.3 M"), (5e9, "5 G")]
)
def test_numbers_have_three_digits(value, said):
    assert tables.number(value) == said


def test_times_have_a_unit():
    assert [tables.time(one) for one in (2.5, 0.0123, 4e-6, 7e-9, 0)] == ["2.5 s", "12.3 ms", "4 us", "7 ns", "0 ns"]
