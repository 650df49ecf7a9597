"""`numalloc demo`: what it reads from the kernel, how it sums up, what it shows of a virtual machine that is made up, and
each program once for real."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from limits import LIMIT, wait_until
from numalloc_tools.allocators import Allocator
from numalloc_tools.allocators.beside import chosen
from numalloc_tools.cli import made
from numalloc_tools.demo import command, lab, report, steps
from numalloc_tools.demo.measurement import Figure, Run, after_work, settled_memory, summary
from numalloc_tools.guest.batch import NotBooted
from numalloc_tools.guest.scenarios import Cell
from numalloc_tools.machine import memory
from rich.console import Console

MAPS = Path("/proc/self/maps").read_text().split()
LIBC = next(word for word in MAPS if os.path.basename(word).startswith("libc.so"))  # in numalloc's place, before anything is built


def numalloc(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    code = "from numalloc_tools.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT
    )


def test_numa_maps_are_summed_by_node_without_files():
    text = (
        "55d0 default heap anon=300 dirty=300 N0=100 N2=200 kernelpagesize_kB=4\n"
        "7f00 bind:1 anon=512 dirty=512 N1=1 kernelpagesize_kB=2048\n"
        "7f10 default file=/lib/libc.so.6 mapped=50 N0=50 kernelpagesize_kB=4\n"
        "7f20 default\n"
    )
    assert memory.from_numa_maps(text) == {0: 100 * 4096, 1: 2 << 20, 2: 200 * 4096}


def test_resident_pages_are_found_without_numa_maps():
    """The way of kernels that have no numa_maps, tried on this very process."""
    if not os.path.exists("/proc/self/pagemap"):
        pytest.skip("no pagemap here")
    found = memory._asked(os.getpid())
    resident = memory.status(os.getpid(), "RssAnon")
    assert 0.5 * resident < sum(found.nodes.values()) < 1.5 * resident


def test_ratio_is_the_median_of_the_rounds_own_ratios():
    runs = [
        Run(name, number, [Figure("SET", value, "requests/s", "throughput")], "numa_maps")
        for number, (base, ours) in enumerate([(100, 150), (10, 15), (1000, 2000)])
        for name, value in (("glibc", base), ("numalloc", ours))
    ]
    found = summary(runs, "numalloc", "glibc", "SET")
    assert (found.median, found.least, found.most, found.ratio) == (150, 15, 2000, 1.5)
    assert summary(runs, "glibc", "glibc", "SET").ratio is None


class MadeUp:
    """A virtual machine, and a redis on this machine, that only say they ran."""

    def __init__(self, monkeypatch):
        self.remote = {"glibc": 85, "jemalloc": 41, "numalloc": 0}
        self.failure: Exception | None = None
        self.ran: list[str] = []
        monkeypatch.setattr(lab.accelerator, "qemu", lambda architecture: "qemu")
        monkeypatch.setattr(lab, "installed", lambda name: Path(LIBC))
        monkeypatch.setattr(lab, "measure", self.measure)
        redis = SimpleNamespace(NAME="redis", ABOUT="{requests} requests", REQUESTS=200, program=lambda: sys.executable, run=self.run)
        monkeypatch.setitem(command.PROGRAMS, "redis", redis)

    def measure(self, machine, wanted, switches, note, *_) -> list[str]:
        if self.failure:
            raise self.failure
        for scenario, allocator in wanted:
            self.ran.append(f"{scenario.program} {allocator.name} {len(machine.nodes)}")
            spread = tuple(10 + (node == 1) for node in range(len(machine.nodes)))
            note(Cell(scenario, switches, allocator.name, pages=100, remote=self.remote[allocator.name], spread=spread))
        return []

    def run(self, allocator: Allocator, number: int, requests: int, folder: Path) -> Run:
        self.ran.append(f"redis {allocator.name} {number} {requests}")
        held, source = after_work(os.getpid())
        return Run(allocator.name, number, [Figure("SET", 1234567, "requests/s", "throughput"), *held, settled_memory(os.getpid())], source)


@pytest.fixture
def made_up(monkeypatch) -> MadeUp:
    return MadeUp(monkeypatch)


def demo(*arguments: str) -> int:
    return made(["demo"])(["demo", "--library", LIBC, *arguments], standalone_mode=False)


def test_the_machine_comes_first_and_then_redis(made_up, capsys, tmp_path):
    output = tmp_path / "result.json"
    assert demo("--json", str(output)) == 0
    assert made_up.ran[:4] == ["generations glibc 8", "generations jemalloc 8", "generations numalloc 8", "generations glibc 8"]
    assert made_up.ran[9:11] == ["redis glibc 1 200", "redis numalloc 1 200"]
    lines = capsys.readouterr().out.splitlines()
    first = next(number for number, one in enumerate(lines) if one.startswith("Threads end; "))
    assert lines[first + 1 : first + 4] == [
        "  glibc     █████████████████···   85 %   ▇█▇▇▇▇▇▇   14 %",
        "  jemalloc  ████████············   41 %   ▇█▇▇▇▇▇▇   14 %",
        "  numalloc  ····················    0 %   ▇█▇▇▇▇▇▇   14 %",
    ]
    assert first < next(number for number, one in enumerate(lines) if one.startswith("redis on this machine"))
    assert max(map(len, lines)) <= 100
    found = json.loads(output.read_text())
    assert (found["lab"]["nodes"], len(found["lab"]["cells"]), len(found["runs"])) == (8, 9, 6)


@pytest.mark.parametrize(
    ("arguments", "ran"),
    [
        (["--lab"], {"generations", "listing1"}),
        (["--program", "redis"], {"redis"}),
        (["--lab", "--program", "redis"], {"generations", "listing1", "redis"}),
    ],
)
def test_either_part_alone(made_up, arguments, ran):
    assert demo(*arguments) == 0
    assert {one.split()[0] for one in made_up.ran} == ran


def test_options_reach_their_part(made_up):
    made_up.remote["other"] = 50
    assert demo("--nodes", "4", "--rounds", "1", "--requests", "500", "--allocator", f"other={LIBC}") == 0
    assert {"generations other 4", "listing1 other 4", "redis other 1 500"} <= set(made_up.ran)


def test_a_remote_page_is_status_1_after_all_was_shown(made_up):
    made_up.remote["numalloc"] = 1
    assert demo() == 1
    assert made_up.ran[-1].startswith("redis")


def test_a_machine_that_does_not_boot_is_one_line_and_redis_runs(made_up, capsys):
    made_up.failure = NotBooted("the machine did not boot: QEMU did not start\nThe console's end:\nKernel panic", 124)
    assert demo("--rounds", "1") == 125
    assert made_up.ran == ["redis glibc 1 200", "redis numalloc 1 200"]
    out = capsys.readouterr().out
    assert out.count("the virtual machine does not run: the machine did not boot: QEMU did not start\n") == 1
    assert "panic" not in out and "remote pages" not in out


def test_without_qemu_the_lab_is_one_line(tmp_path):
    done = numalloc("demo", "--lab", "--library", LIBC, PATH=str(tmp_path))
    assert done.returncode == 125
    assert re.fullmatch(r"numalloc: the virtual machine does not run: qemu-system-\w+ is missing; install .*\n", done.stderr)


def test_a_step_that_takes_long_is_said_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setattr(steps, "SILENCE", 0.01)
    written = io.StringIO()
    with steps.Steps(Console(file=written), 2, "booting") as run:
        wait_until(lambda: written.getvalue().count("booting") > 1)
        run.begin("the next")
        wait_until(lambda: "the next" in written.getvalue())
    assert re.match(r"  0:\d\d  booting\n", written.getvalue())


@pytest.mark.parametrize(("nodes", "said"), [(1, "it has one memory node, so nothing is placed"), (4, "it has 4 memory nodes")])
def test_what_the_comparison_means_on_this_machine(nodes, said):
    written = io.StringIO()
    console = Console(file=written, width=60)  # a narrow terminal, on which no figure is cut
    runs = [
        Run(name, number, [Figure(*figure) for figure in FIGURES], "numa_maps")
        for name in ("glibc", "own jemalloc", "numalloc")
        for number in (1, 2)
    ]
    report.print_heading(console, "redis", nodes)
    report.print_table(console, runs, ["glibc", "own jemalloc", "numalloc"], nodes)
    assert said in " ".join(written.getvalue().split())
    assert ("node 0" in written.getvalue()) == (nodes > 1)
    assert "…" not in written.getvalue() and written.getvalue().count("1,234,568 ± 0 %") == 3
    assert max(map(len, written.getvalue().splitlines())) <= 100


FIGURES = [
    ("MSET (10 keys)", 1234567.8, "requests/s", "throughput"),
    ("all of it", 4.5, "s", "CPU time"),
    ("with its data", 1 << 30, "B", "memory"),
    ("node 0", 1 << 30, "B", "memory by node"),
]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--nodes", "4"], "--nodes: is for the virtual machine; accepted: with --lab, or without --program"),
        (["--kernel", "/nowhere"], "--kernel: is for the virtual machine"),
        (["--lab", "--kernel", "/nowhere"], "--kernel: /nowhere is not a complete kernel"),
        (["--lab", "--nodes", "1"], "--nodes: 1 is out of range; accepted: 2 to 32"),
        (["--program", "emacs"], "accepted: redis, python, sqlite"),
        (["--rounds", "0"], "--rounds: 0 is too few"),
        (["--requests", "1"], "--requests: 1 is too few"),
        (["--library", "/nowhere.so"], "/nowhere.so is not a file"),
        (["--library", "/bin/sh", "--allocator", "other"], "accepted: NAME=PATH"),
        (["--library", "/bin/sh", "--allocator", "glibc=/bin/sh"], "'glibc' is taken"),
        (["--library", "/bin/sh", "--allocator", "my own=/bin/sh"], "'my own' contains a blank"),
        (["--json", "/nowhere/result.json"], "folder of /nowhere/result.json does not exist"),
    ],
)
def test_errors_are_one_line_and_status_2(arguments, named):
    done = numalloc("demo", "--program", "python", *arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--rounds", "--requests"])
def test_options_of_the_program_need_one(option):
    done = numalloc("demo", "--lab", option, "100")
    said = f"numalloc: {option}: is for the program on this machine; accepted: with --program, or without --lab\n"
    assert (done.returncode, done.stderr) == (2, said)


def test_missing_program_names_its_package(tmp_path):
    done = numalloc("demo", "--library", LIBC, PATH=str(tmp_path))
    assert done.returncode == 2
    assert "install the Debian package redis-" in done.stderr


@pytest.mark.full("real servers and databases, seconds each")
@pytest.mark.parametrize("program", command.PROGRAMS)
def test_program_runs(program, tmp_path):
    """With the C library itself in numalloc's place, so that this holds before anything is built."""
    needed = {"redis": "redis-server", "sqlite": "sqlite3"}.get(program)
    if needed and not shutil.which(needed):
        pytest.skip(f"no {needed} here")
    output = tmp_path / "result.json"
    done = numalloc("demo", "--program", program, "--rounds", "1", "--requests", "200", "--library", LIBC, "--json", str(output))
    assert done.returncode == 0, done.stderr
    assert "settled" in done.stdout
    runs = json.loads(output.read_text())["runs"]
    assert {"glibc", "numalloc"} <= {run["allocator"] for run in runs}
    for run in runs:
        figures = run["figures"]
        assert figures["peak"]["value"] >= figures["with its data"]["value"] > 0
        assert sum(f["value"] for name, f in figures.items() if name.startswith("node ")) > 0
        assert all(f["value"] > 0 for f in figures.values() if f["unit"].endswith("/s"))


@pytest.mark.parametrize(
    "call, names", [("mallocx(8, 0)", ["own jemalloc", "numalloc"]), ("malloc(8)", ["glibc", "own jemalloc", "numalloc"])]
)
def test_what_only_jemalloc_can_serve_has_no_row_of_glibc(call, names, tmp_path):
    """redis 8 passes blocks of mallocx to malloc_usable_size, which is libc's if libc is preloaded."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no compiler here")
    jemalloc, program = tmp_path / "libjemalloc.so.2", tmp_path / "program"
    (tmp_path / "jemalloc.c").write_text("void* mallocx(unsigned long n, int flags) { return n ? &flags + 1 : 0; }\n")
    (tmp_path / "program.c").write_text(
        f"void* mallocx(unsigned long, int);\nvoid* malloc(unsigned long);\nint main(void) {{ return !{call}; }}\n"
    )
    for words in (
        ["-shared", "-fPIC", "-Wl,-soname,libjemalloc.so.2", "jemalloc.c", "-o", str(jemalloc)],
        [f"-Wl,--no-as-needed,-rpath,{tmp_path}", "program.c", str(jemalloc), "-o", str(program)],
    ):
        subprocess.run([compiler, *words], cwd=tmp_path, check=True, timeout=LIMIT)
    assert [one.name for one in chosen(str(program), Path(LIBC), [])] == names


def test_crash_is_named(tmp_path):
    """A library whose malloc never works stands for an allocator that brings the program down."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no compiler here")
    source, library = tmp_path / "broken.c", tmp_path / "broken.so"
    source.write_text("#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }\n")
    subprocess.run([compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True, timeout=LIMIT)
    done = numalloc("demo", "--program", "python", "--rounds", "1", "--requests", "200", "--library", str(library))
    assert done.returncode == 1
    assert "was ended by SIGABRT under numalloc" in done.stderr
