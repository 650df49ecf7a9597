"""That the matrix sees what it is there to see: made-up programs, each with one fault under the "library"."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from matrix import events, install, report, run, settings, table, tree


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Stands for the library: it does nothing."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "empty.c").write_text("int of_the_matrix;\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "lib.so", folder / "empty.c"], check=True)
    return folder / "lib.so"


@pytest.fixture(params=["connector", "strace"])
def runner(request, library, tmp_path):
    """A process that adopts orphans must not be pytest's own: the work is done in a child of it."""
    found = run.Runner(library, tmp_path / "cache", False, "none")
    if request.param == "connector" and found.watch != "connector":
        found.close()
        pytest.skip("the kernel's process connector is not open here")
    found.watch = request.param
    yield found
    found.close()


def row(**words) -> table.Row:
    return table.Row(name="made up", family="none", **({"timeout": 20} | words))


def ours(then: str, otherwise: str = "true") -> str:
    return f'if [ -n "$LIBRARY" ]; then {then}; else {otherwise}; fi'


def test_what_agrees_is_the_same(runner):
    result = runner.row(row(command="echo one; echo two >&2; sh -c 'kill -TERM $$'; sleep 0.3"))
    assert (result.verdict, result.faults, result.remarks) == (run.SAME, [], [])


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ({"command": ours("exit 3")}, "command ends with 3, glibc's with 0"),
        ({"command": ours("echo a", "echo b")}, "other output: 'a'"),
        ({"command": "echo a; " + ours("true", "echo b")}, "output ends early"),
        ({"command": ours("echo fault 12 >&2", "echo fine 7 >&2")}, "new on stderr: 'fault 12'"),
        # The parent does not say that its grandchild has crashed.
        ({"command": ours("sh -c 'sh -c \"kill -SEGV \\$\\$\"; true'")}, "SIGSEGV in sh: 1"),
        ({"command": ours("sh -c 'kill -ABRT $$'; sh -c 'kill -ABRT $$'", "sh -c 'kill -USR1 $$'; true")}, "SIGABRT in sh: 2"),
        # A daemon is in nobody's charge any more.
        ({"command": ours("setsid sh -c '(sleep 0.2; kill -BUS $$) & wait' & exit 0"), "signals_free": ["sleep .*"]}, "SIGBUS in sh: 1"),
        ({"command": ours("{ sleep 60 & }")}, "left running: sleep"),
        ({"command": ours("sleep 60"), "timeout": 2}, "hangs: command did not end"),
        ({"command": "env -u LD_PRELOAD sleep 2"}, "runs without the library: sleep"),
        ({"command": "echo x > f; " + ours("echo y > f"), "files": ["f"]}, "f is another file"),
        ({"command": "echo n " + "$((1 + ${#LIBRARY}))", "measures": [{"name": "n", "pattern": "n (\\d+)", "at_most": 1.5}]}, "n: "),
        (
            {"command": "python3 -c \"import os, time; b = bytearray(60 << 20 if os.environ['LIBRARY'] else 1); time.sleep(2)\""},
            "peak memory ",
        ),
    ],
)
def test_what_differs_is_told(runner, words, fault):
    result = runner.row(row(**words))
    assert result.verdict == run.DIFFERS
    assert any(text.startswith(fault) for text in result.faults), result.faults
    assert not tree.members()


def test_servers_are_loaded_weighed_and_stopped(runner):
    server = "exec python3 -c \"import os, socket; s = socket.create_server(('127.0.0.1', int(os.environ['PORT'])))\nwhile True: s.accept()[0].send(b'x')\""
    ask = "python3 -c \"import os, socket; print(socket.create_connection(('127.0.0.1', int(os.environ['PORT']))).recv(1))\""
    result = runner.row(row(server=server, ready=f"{ask} 2>/dev/null", load=ask, settle=0.2))
    assert (result.verdict, result.faults) == (run.SAME, [])
    assert result.memory["settled"][1] > 1000


def test_a_server_that_dies_is_told(runner):
    result = runner.row(row(server=ours("kill -SEGV $$", "exec sleep 60"), ready="sleep 0.3", load="true", settle=0.1))
    assert "SIGSEGV in sh: 1" in result.faults


def test_a_child_that_has_yet_to_become_its_command_weighs_nothing():
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    sampler = tree.Sampler("")
    try:
        assert sampler.now() == 0
    finally:
        sampler.end()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_what_varies_under_glibc_is_not_held_against_ours(runner):
    assert runner.row(row(command="date +%N; date +%N >&2")).verdict == run.SAME


def test_words_for_what_was_not_compared(runner):
    assert runner.row(row(command="exit 4")).verdict == run.NO_BASELINE
    assert runner.row(row(command="sleep 60", timeout=1)).faults == ["command did not end"]
    assert runner.row(row(command="echo no such thing >&2; exit 77")).verdict == run.NOT_TRIED
    assert runner.row(row(command="true", sysctl={"kernel.no_such_switch": "1"})).verdict == run.NOT_TRIED
    if os.geteuid() != 0:
        assert runner.row(row(command="true", root=True)).faults == ["needs root"]
        assert runner.row(row(command="true", sysctl={"vm.max_map_count": "1000"})).faults == ["needs root to set vm.max_map_count"]
    absent = runner.row(row(command="true", apt=["no-such-package-of-numalloc"]))
    assert (absent.verdict, absent.faults) == (run.NOT_INSTALLABLE, ["not installed: no-such-package-of-numalloc"])
    assert runner.row(row(command=ours("exit 1"), cannot="a reason")).verdict == run.CANNOT
    assert runner.row(row(command="true", cannot="a reason")).faults == ["is said not to work, and works"]


def test_a_build_that_fails_is_told_in_one_line(runner):
    result = runner.row(row(command="true", build=["echo one >&2; echo error: two >&2; exit 1"]))
    assert (result.verdict, result.faults) == (run.NOT_INSTALLABLE, ["sh: error: two"])


def test_the_end_of_the_run_ends_what_it_started(library, tmp_path):
    """Ended by SIGTERM in the middle of a row, it leaves no process behind."""
    folder = tmp_path / "world"
    (folder / "tables").mkdir(parents=True)
    for name in ("matrix", "programs", "__main__.py"):
        (folder / name).symlink_to(Path(__file__).resolve().parent / name)
    (folder / "tables/x.toml").write_text('family = "x"\n[[program]]\nname = "x"\ncommand = "sleep 987 & sleep 987"\n')
    driver = (
        f"import sys, runpy; sys.path.insert(0, {str(folder)!r}); import matrix.table, pathlib; "
        f"matrix.table.rows.__defaults__ = (pathlib.Path({str(folder / 'tables')!r}),); "
        f"sys.argv[1:] = ['--library', {str(library)!r}, '--cache', {str(tmp_path / 'c')!r}, '--only', 'x']; "
        f"runpy.run_path({str(folder / '__main__.py')!r}, run_name='__main__')"
    )
    world = subprocess.Popen([sys.executable, "-c", driver], stdout=subprocess.DEVNULL)
    sleepers: list[psutil.Process] = []
    deadline = time.monotonic() + 20
    while len(sleepers) < 2 and time.monotonic() < deadline:
        sleepers = [p for p in psutil.Process(world.pid).children(recursive=True) if p.name() == "sleep"]
        time.sleep(0.05)
    assert len(sleepers) == 2
    world.send_signal(signal.SIGTERM)
    assert world.wait(20) == 143
    assert not psutil.wait_procs(sleepers, 5)[1]


def test_settings_are_put_back(tmp_path):
    switch = Path("/proc/sys/kernel/core_uses_pid")  # harmless
    if not os.access(switch, os.W_OK):
        pytest.skip("needs root")
    before = switch.read_text()
    with pytest.raises(RuntimeError), settings.changed({"kernel.core_uses_pid": "1" if before.strip() == "0" else "0"}):
        assert switch.read_text() != before
        raise RuntimeError
    assert switch.read_text() == before


@pytest.mark.parametrize(("only", "listed"), [("^redis$", ["redis"]), ("^no such row$", []), ("(", [])])
def test_only_some_rows_or_a_word_why_none(only, listed):
    world = subprocess.run([sys.executable, Path(__file__).parent, "--list", "--only", only], capture_output=True, text=True)
    assert [line.split(": ")[1] for line in world.stdout.splitlines()] == listed
    assert (world.returncode, f"--only {only}: " in world.stderr) == ((0, False) if listed else (2, True))


def test_the_tables_are_whole():
    rows = table.rows()
    assert len(rows) > 90
    assert {row.family for row in rows if row.quick}


@pytest.mark.parametrize("text", ['colour = "red"', 'server = "x"', 'output = "any"'])
def test_a_row_that_says_nonsense_is_refused(tmp_path, text):
    (tmp_path / "x.toml").write_text(f'family = "x"\n[[program]]\nname = "x"\ncommand = "true"\n{text}\n')
    with pytest.raises(ValueError, match="x"):
        table.rows(tmp_path)


def test_the_report_says_what_was_found():
    rows = [row(command="true"), table.Row(name="other | one", family="none", command="true")]
    results = {
        "made up": run.Result("made up", run.SAME, version="1.2", memory={"peak": [2048, 20480]}, commit="abc"),
        "other | one": run.Result("other | one", run.DIFFERS, ["SIGSEGV in x: 1"], commit="abc"),
    }
    text = report.markdown(rows, results, "strace")
    assert "| made up | 1.2 | as under glibc | 2.0, 20 |  |" in text
    assert "- **other | one**: SIGSEGV in x: 1" in text
    assert "Of 2 programs 1 run as under glibc, 1 differ" in text


def test_names_of_signals():
    assert events.signal_name(11) == "SIGSEGV"
    assert events.signal_name(60) == "SIG60"
    assert install._is_installed("no-such-package-of-numalloc") is False
