"""Names of allocators, programs and statistics that contain the marks of rich's markup are shown as they are."""

import io
from types import SimpleNamespace

import made_up_machines as made_up
import pytest
from numalloc_tools.bench.progress import run_plan
from numalloc_tools.bench.results import Results, Run
from numalloc_tools.bench.schedule import Plan
from numalloc_tools.bench.table import print_tables
from numalloc_tools.demo import measurement
from numalloc_tools.demo import report as demo_report
from numalloc_tools.launch import Setting
from numalloc_tools.machine.facts import read
from numalloc_tools.machine.files import Files
from numalloc_tools.observe import detail, top_view
from numalloc_tools.observe.model import ClassRecord, Memory, Moment, NodeRecord, Page
from numalloc_tools.profile import report as profile_report
from numalloc_tools.profile.samples import VIEWS, Sample
from numalloc_tools.progress import bar_on
from numalloc_tools.topology import text
from numalloc_tools.tune import report as tune_report
from numalloc_tools.tune.aims import Aim
from numalloc_tools.tune.records import Records
from numalloc_tools.tune.result import Result, Row
from rich.console import Console

ODD = "[bold]x[/]y[/b]"  # rich refuses it as markup: nothing is open where the last mark closes


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def said(console: Console) -> str:
    return console.file.getvalue()


def moment(name: str, page: Page | None) -> Moment:
    return Moment(1, name, 0, 0, 0, True, Memory(1, 1, 1, 0, 0, 0, 0, None), {}, {f"bind:{name}": 1}, (), 0, 0, 0, page)


def test_names_in_bench(console):
    runs = [Run(ODD, 1, name, number, "ok", "", {"seconds": 1.0}) for name in ("glibc", ODD) for number in range(3)]
    print_tables(console, Results({}, {}, [{"name": "glibc"}, {"name": ODD}], [], runs), ODD)
    assert f"relative to {ODD};" in said(console) and f" {ODD}/1 " in said(console)
    assert said(console).count(f"  {ODD} ") >= 2


def test_names_in_demo(console):
    figures = [measurement.Figure("rate", 1.0, "1/s", measurement.THROUGHPUT)]
    runs = [measurement.Run(name, 1, figures, "x") for name in (ODD, "glibc")]
    demo_report.print_table(console, runs, [ODD, "glibc"], 1)
    assert f" {ODD} " in said(console) and f"/ {ODD}" in said(console)


def test_names_in_tune(console):
    setting, aim = Setting(f"/{ODD}.so"), Aim(ODD)
    search = SimpleNamespace(records=Records([aim]), reference=setting)
    tune_report._show_race(console, Result(SimpleNamespace(search=search), [Row(setting, 1, 1.0, 0, None, "the baseline")], [], {}))
    assert f"median {ODD}" in said(console) and f" /{ODD}.so" in said(console)


@pytest.mark.parametrize("by", ["function", "stack", "place"])
def test_names_in_profile(console, by):
    places = {"node_alloc": ODD, "node_pages": ODD, "node_free": ODD, "remote_pages": "yes"}
    profile_report.print_report(console, [Sample((ODD,), 1, 1, places)], VIEWS["live"], by, 5, [ODD])
    assert said(console).count(ODD) >= 3


def test_names_in_stat_and_top(console):
    page = Page(0, {}, (NodeRecord(0, {ODD: 1}),), (ClassRecord(0, 8, {"live": 1, ODD: 1}),))
    console.print(detail.detail(moment(ODD, page), None, None, 200))
    assert f"{ODD}, process 1" in said(console) and f"bind:{ODD}" in said(console)
    assert said(console).count(ODD) == 4
    console.print(top_view.view([top_view.Row(moment(ODD, None), None, None)] * 2, "memory", (0,), console, live=False))
    assert said(console).count(ODD) == 6


def test_names_in_topology(console, tmp_path):
    files = {
        "proc/self/cgroup": f"0::/{ODD}",
        "proc/self/mountinfo": "1 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup rw",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory",
        "proc/sys/kernel/osrelease": f"6.1.0-{ODD}",
    }
    root = made_up.machine(tmp_path, made_up.node(0, "0"), **files)
    text.show(read(Files(root)), console)
    assert f"Linux 6.1.0-{ODD}" in said(console) and f"version 2, /{ODD}" in said(console)


def test_names_in_progress(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal gets no bar
    terminal = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    with bar_on(terminal, transient=False) as bar:
        bar.add_task(ODD, total=1)
    assert ODD in said(terminal)


def test_names_in_progress_of_bench(monkeypatch, tmp_path):
    monkeypatch.setenv("TERM", "xterm")
    terminal = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    lacks = SimpleNamespace(name=ODD, missing="not here")
    case = SimpleNamespace(name=ODD, program=lacks, threads=1)
    run_plan(Plan([case], [SimpleNamespace(name="glibc", missing="")], 1), Results({}, {}, [], []), tmp_path / "x.json", terminal)
    assert f"{ODD} under glibc" in said(terminal)
