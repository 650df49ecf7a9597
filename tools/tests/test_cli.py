"""The command itself: what is wrong with its words is one line, and --debug shows where."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from limits import LIMIT
from numalloc_tools import __version__, version
from numalloc_tools.cli import COMMANDS, made
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]


def numalloc(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", "from numalloc_tools.cli import main; main()", *words], capture_output=True, text=True, timeout=LIMIT
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["run", "--nonsense", "--", "true"], "No such option: --nonsense"),
        (["run", "--threads"], "Option '--threads' requires an argument"),
        (["demo", "--rounds", "many"], "Invalid value for '--rounds'"),
    ],
)
def test_wrong_words_are_one_line_and_status_2(words, said):
    done = numalloc(*words)
    assert said in done.stderr
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")


def test_debug_shows_a_traceback():
    done = numalloc("--debug", "run", "--threads", "thick", "--", "true")
    assert "Traceback" in done.stderr and done.stderr.endswith("accepted: default, none, sparse, dense\n")
    assert done.returncode == 2


def test_no_words_show_the_help():
    assert "Usage" in numalloc("tune").stdout + numalloc("tune").stderr
    assert numalloc("--help").returncode == 0


@pytest.mark.parametrize("imported", ["typer", "tomli_w"])
def test_interrupted_import_ends_as_by_the_signal(tmp_path, imported):
    """typer is imported by every command, tomli_w by the package of `run`."""
    (tmp_path / f"{imported}.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    entry = re.search(r'^numalloc = "(\S+):(\w+)"', (ROOT / "tools/pyproject.toml").read_text(), re.MULTILINE)
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    for words in (["-c", f"from {entry[1]} import {entry[2]}; {entry[2]}()"], ["-m", "numalloc_tools"]):
        done = subprocess.run(
            [sys.executable, *words, "run", "--show", "--", "true"],
            env=os.environ | {"PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_interrupt_of_a_command_is_an_exception():
    code = "import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); from numalloc_tools import cli;"
    code += "cli.run(lambda words: lambda standalone_mode: os.kill(os.getpid(), signal.SIGINT))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.fixture(scope="module")
def whole() -> typer.Typer:
    return made()


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS), ["bench", "report"], ["lab", "run"]], ids=" ".join)
def test_short_and_long_flag_show_the_same_help(whole, words):
    short, long = (CliRunner().invoke(whole, [*words, flag]) for flag in ("-h", "--help"))
    assert (short.exit_code, short.stdout) == (0, long.stdout)
    assert "Usage" in short.stdout


def test_flags_of_the_program_to_run_are_its_own():
    done = numalloc("run", "--allocator", "glibc", "--", "echo", "-h")
    assert (done.returncode, done.stdout) == (0, "-h\n"), done.stderr


def test_a_command_loads_no_other_command():
    loaded = "print(*(name for name in sys.modules if name.startswith('numalloc_tools.')))"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; from numalloc_tools.cli import made; made(['--debug', 'run', 'stat']); {loaded}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT,
    )
    assert [name for name in done.stdout.split() if name.endswith("command")] == ["numalloc_tools.run.command"]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_is_found_by_its_name(name):
    assert set(typer.main.get_command(made([name])).commands) >= {name}


def test_version_and_commit_are_one_line():
    done = numalloc("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"numalloc \d+\.\d+\.\d+( \([0-9a-f]{7,40}(-dirty)?\))?\n", done.stdout), done.stdout


def test_commit_is_of_a_checkout_only(tmp_path):
    assert version.commit(tmp_path) == ""
    (tmp_path / ".git").write_text("gitdir: nowhere")
    assert version.commit(tmp_path) == ""


def test_library_and_tools_have_one_version():
    said = re.search(r"^project\(numalloc VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    assert said[1] == __version__
