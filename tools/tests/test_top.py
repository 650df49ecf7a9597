"""`numalloc top`: in a pseudo-terminal as people use it, and where there is none."""

import dataclasses
import io
import json
import os
import signal
import subprocess
import time

import pytest
from limits import LIMIT
from numalloc_tools.observe import top_view
from numalloc_tools.observe.model import Memory, Moment, NodeMemory
from observed import COMMAND, WrittenPage, numalloc, program, start_of
from rich.console import Console
from terminal import ENTERED, LEFT, Terminal, plain

# Each of them removes pages that others left behind, and makes some: one after the other.
pytestmark = pytest.mark.xdist_group("statistics-pages")


@pytest.fixture
def two_programs():
    with program(48) as large, program(16) as small:
        yield large.pid, small.pid


@pytest.fixture
def opened():
    terminals = []

    def start(*arguments, **options) -> Terminal:
        terminals.append(Terminal([*COMMAND, "top", *map(str, arguments)], **options))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


@pytest.mark.full("a terminal, and twenty seconds of patience")
def test_view_refreshes_and_q_ends_it(opened, two_programs):
    terminal = opened("--interval", "0.3", *two_programs)
    first = terminal.wait_for("2 processes by memory")
    assert ENTERED in terminal.said and LEFT not in terminal.said
    terminal.wait_for("2 processes by memory", after=first)
    for pid in two_programs:
        assert str(pid) in plain(terminal.said)
    terminal.press("q")
    assert terminal.ended() == 0
    assert LEFT in terminal.said
    assert terminal.in_order


@pytest.mark.full("a terminal, and twenty seconds of patience")
def test_view_is_in_no_order_while_it_runs(opened, two_programs):
    """What the other tests hold to be in order could otherwise be a terminal that never was touched."""
    terminal = opened(*two_programs)
    terminal.wait_for("2 processes")
    assert not terminal.in_order


@pytest.mark.full("a terminal, and twenty seconds of patience")
def test_interrupt_leaves_the_terminal_in_order(opened, two_programs):
    terminal = opened(*two_programs)
    terminal.wait_for("2 processes")
    terminal.press("\x03")
    assert terminal.ended() == 130
    assert terminal.in_order
    assert "Traceback" not in terminal.said


@pytest.mark.full("a terminal, and twenty seconds of patience")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_leaves_the_terminal_in_order(opened, two_programs, number):
    terminal = opened(*two_programs)
    terminal.wait_for("2 processes")
    terminal.process.send_signal(number)
    assert terminal.ended() == 128 + number
    assert terminal.in_order


@pytest.mark.full("a terminal, and twenty seconds of patience")
def test_suspended_it_gives_the_terminal_back_and_goes_on_when_continued(opened, two_programs):
    terminal = opened("--interval", "0.3", *two_programs)
    terminal.wait_for("2 processes")
    terminal.press("\x1a")
    terminal.wait_for(LEFT)
    deadline = time.monotonic() + 20
    while state_of(terminal.process.pid) != "T":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert terminal.in_order
    stopped = len(terminal.said)
    terminal.process.send_signal(signal.SIGCONT)
    terminal.wait_for("2 processes", after=stopped)
    terminal.press("q")
    assert terminal.ended() == 0
    assert terminal.in_order


def state_of(pid: int) -> str:
    return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]


@pytest.mark.full("a terminal, and twenty seconds of patience")
def test_keys_sort(opened, two_programs):
    large, small = two_programs
    terminal = opened("--interval", "30", large, small)
    # The first rates come after half a second, whatever the interval.
    seen = terminal.wait_for("0.00")
    for key, order in (("c", "cpu"), ("r", "remote"), ("f", "faults"), ("m", "memory")):
        terminal.press(key)
        seen = terminal.wait_for(f"by {order}", after=seen)
    last = plain(terminal.said).rpartition("by memory")[2]
    terminal.read(0.2)
    assert last.index(str(large)) < last.index(str(small))
    terminal.press("q")
    assert terminal.ended() == 0


@pytest.mark.full("a terminal, and twenty seconds of patience")
def test_view_fits_a_small_terminal(opened, two_programs):
    terminal = opened("--interval", "0.3", *two_programs, rows=5, columns=60)
    terminal.wait_for("2 processes")
    assert terminal.process.poll() is None
    terminal.resize(40, 130)
    terminal.wait_for("faults/s", after=len(terminal.said))
    terminal.press("q")
    assert terminal.ended() == 0


@pytest.mark.full("a terminal, and twenty seconds of patience")
def test_single_process_is_shown_in_full(opened):
    with program(8) as process, WrittenPage(process.pid, start_of(process.pid)).written():
        terminal = opened("--interval", "0.3", process.pid, rows=60)
        terminal.wait_for("remote frees")
        terminal.wait_for("size classes")
        process.kill()
        process.wait(timeout=LIMIT)
        assert terminal.ended() == 0
    assert terminal.in_order


@pytest.mark.full("a terminal, and twenty seconds of patience")
def test_it_ends_when_the_processes_have_ended(opened):
    with program() as process:
        terminal = opened("--interval", "0.2", process.pid)
        terminal.wait_for(f"process {process.pid}")
    assert terminal.ended() == 0
    assert terminal.in_order


# ---- Without a terminal


def test_plain_looks_without_a_terminal(two_programs):
    done = numalloc("top", *two_programs, "--interval", "0.2", "--count", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2 processes by memory") == 2
    assert "\x1b" not in done.stdout
    large, small = two_programs
    assert done.stdout.index(str(large)) < done.stdout.index(str(small))
    assert "q quit" not in done.stdout


def test_json_has_every_process_and_rates_from_the_second_look_on(two_programs):
    done = numalloc("top", *two_programs, "--json", "--interval", "0.2", "--count", "2")
    first, second = map(json.loads, done.stdout.splitlines())
    assert [one["pid"] for one in second["processes"]] == list(two_programs)
    assert first["processes"][0]["rates"] is None
    assert second["processes"][0]["rates"]["seconds"] >= 0.2
    assert second["time"] > first["time"]


@pytest.mark.full("looks at every process of the machine")
def test_own_processes_without_a_choice_and_not_itself():
    with program(100) as process:
        looking = subprocess.Popen([*COMMAND, "top", "--json", "--count", "1"], stdout=subprocess.PIPE, text=True)
        found = json.loads(looking.communicate(timeout=LIMIT)[0])["processes"]
    pids = [one["pid"] for one in found]
    assert process.pid in pids and looking.pid not in pids
    assert len(pids) <= 40
    resident = [one["resident_bytes"] for one in found]
    assert resident == sorted(resident, reverse=True)


def test_processes_by_name(tmp_path):
    named = tmp_path / f"{os.getpid()}-a-name-of-its-own"
    named.symlink_to(os.path.realpath("/bin/sleep"))
    process = subprocess.Popen([str(named), str(2 * LIMIT)])
    try:
        for wanted in (named.name, named.name[:15], f"{os.getpid()}-a-name*"):
            done = numalloc("top", "--name", wanted, "--json", "--count", "1")
            assert [one["pid"] for one in json.loads(done.stdout)["processes"]] == [process.pid], wanted
    finally:
        process.kill()
        process.wait(timeout=LIMIT)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["x"], "PID: 'x' is not a process"),
        (["2147483646"], "process 2147483646 does not exist"),
        (["--sort", "name"], "--sort: 'name' is unknown; accepted: memory, cpu, remote, faults"),
        (["--interval", "0"], "--interval: 0 is out of range"),
        (["--count", "0"], "--count: 0 is too few"),
    ],
)
def test_errors_are_one_line_and_status_2(arguments, named):
    done = numalloc("top", *arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("held", "blocks", "expected"),
    [
        ({0: 800, 2: 1, 3: 400}, True, "█ ▁▄"),
        ({0: 900, 2: 1, 3: 400}, False, "9 14"),
        ({}, True, "    "),
        (None, True, "-"),
    ],
)
def test_spread_has_a_sign_for_each_node(held, blocks, expected):
    nodes = None if held is None else {node: NodeMemory(own=amount) for node, amount in held.items()}
    moment = Moment(1, "x", 0, 0, 0, False, Memory(0, 0, 0, 0, 0, 0, 0, None), nodes, {}, (), 0, 0, 0, None)
    assert top_view.spread(moment, (0, 1, 2, 3), blocks) == expected


@pytest.mark.parametrize("width", [70, 80, 120])
def test_a_narrow_terminal_loses_columns_and_no_digits(width):
    """PIDs and memory are read as they are: what does not fit as a whole is left out."""
    nodes = tuple(range(4))
    moment = Moment(
        2345678,
        "a-long-name-of-a-program",
        0,
        0,
        0,
        True,
        Memory(123 << 20, 0, 0, 0, 0, 0, 0, None),
        dict.fromkeys(nodes, NodeMemory(own=9)),
        {},
        (),
        0,
        0,
        0,
        None,
    )
    console = Console(file=io.StringIO(), width=width)
    rows = [top_view.Row(moment, None, None), top_view.Row(dataclasses.replace(moment, pid=99), None, None)]
    console.print(top_view.view(rows, "memory", nodes, console, False))
    said = console.file.getvalue()
    assert "2345678" in said and "123 MiB" in said and "nodes 0-3" in said and "…" not in said
    assert ("swapped" in said) == (width == 120)
