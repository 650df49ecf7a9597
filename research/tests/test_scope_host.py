"""Beside the host: instructions against callgrind's, the order of allocators against measured time."""

import io
import subprocess

import pytest
from numalloc_tools.allocators import Allocator
from numalloc_tools.launch.launcher import Ended
from numalloc_tools.problem import Problem
from rich.console import Console
from scope_counts import run

from research.scope import hardware, host, model
from research.scope.host import Beside
from research.scope.results import Run

MACHINE = hardware.named("xeon-2x20")


def test_all_memory_is_equally_near():
    def of(fills: list[int]) -> float:
        raw = run([0, 1], [{"instructions": 1_000_000, "fills": fills}, {}])
        return (
            model.modelled(Run("a", 0, raw, MACHINE).scope, host.near(MACHINE)).parts["instructions"]
            + model.modelled(Run("a", 0, raw, MACHINE).scope, host.near(MACHINE)).parts["remote memory" if fills[1] else "local memory"]
        )

    assert of([0, 500]) == of([500, 0])


def row(name: str, modelled: float, user: float, system: float = 0.0, callgrind: float = 1000.0) -> Beside:
    return Beside(name, 1010.0, callgrind, modelled, user, system, 0.05)


def test_orders_are_compared_not_seconds():
    same = [row("a", 1, 10), row("b", 2, 30), row("c", 3, 31)]
    assert host.agreement(same, lambda one: one.user) == pytest.approx(1)
    one_pair = [row("a", 1, 30), row("b", 2, 10), row("c", 3, 31)]
    assert host.agreement(one_pair, lambda one: one.user) == pytest.approx(1 / 3)
    assert same[0].off == pytest.approx(0.01)


def test_what_is_shown():
    out = io.StringIO()
    host.show(Console(file=out, width=120), [row("b", 2, 30, 9), row("a", 1, 10, 40, callgrind=0)])
    text = out.getvalue()
    assert text.index(" a ") < text.index(" b ") and "+1.00 %" in text and "5 %" in text
    assert "1.00 of user time, -1.00 with the system's" in text
    assert "needs the Debian package valgrind" in text


def test_rounds_are_interleaved_and_summed_up(monkeypatch, tmp_path):
    order, user = [], iter([1.0, 10.0, 20.0, 2.0, 3.0, 30.0])

    def ran(command, allocator, limit):
        order.append(allocator.name)
        return Ended({"user": next(user), "system": 0.5})

    monkeypatch.setattr(host.launcher, "run", ran)
    ends = iter([0, 1])
    done = lambda: subprocess.CompletedProcess([], next(ends), "", "==1== Collected : 1000\n")  # noqa: E731
    monkeypatch.setattr(host.subprocess, "run", lambda *_, **__: done())
    monkeypatch.setattr(host.shutil, "which", lambda name: f"/usr/bin/{name}")
    runs = [Run(name, 0, run([0, 1], [{"instructions": 500}, {"instructions": 510}]), MACHINE) for name in "ab"]
    found = host.beside(runs, [Allocator("a"), Allocator("b")], ["true"], 3, lambda _: None)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [(one.allocator, one.user, one.system) for one in found] == [("a", 2.0, 0.5), ("b", 20.0, 0.5)]
    assert [one.callgrind for one in found] == [1000, 0], "what fails under callgrind is not known"
    assert found[0].spread == pytest.approx(1 / 2.5) and found[0].off == pytest.approx(0.01)


def test_a_program_that_is_not_here_or_fails():
    with pytest.raises(Problem, match="--host: nosuch is not on this machine"):
        host.local_command(["nosuch"])
    runs = [Run("a", 0, run([0, 1], [{}, {}]), MACHINE)]
    with pytest.raises(Problem, match="--host: a: false ended with status 1; accepted: a program that runs here"):
        host.beside(runs, [Allocator("a")], ["false"], 1, lambda _: None)


def test_a_program_that_does_not_end_under_callgrind(monkeypatch, tmp_path):
    valgrind = tmp_path / "valgrind"
    valgrind.write_text("#!/bin/sh\nexec sleep 1000\n")
    valgrind.chmod(0o755)
    monkeypatch.setattr(host.shutil, "which", lambda name: str(valgrind))
    monkeypatch.setattr(host, "_CALLGRIND_LIMIT", 0.2, raising=False)
    assert host._callgrind(["true"], Allocator("a")) == 0
