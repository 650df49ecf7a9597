"""Completion by the Tab key, in a bash that has read what `numalloc --show-completion bash` prints."""

import os
import stat
import subprocess
import sys

import pytest
from limits import LIMIT
from numalloc_tools.allocators.found import NAMES
from numalloc_tools.options_table import options
from numalloc_tools.run.flags import generated


@pytest.fixture
def bash(tmp_path):
    """What bash offers for a line, at its end."""
    command = tmp_path / "bin" / "numalloc"
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\nfrom numalloc_tools.cli import main\nmain()\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    environment = os.environ | {"PATH": f"{command.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    def run(script: str, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["bash", "--norc", "-c", script, "bash", *arguments], env=environment, capture_output=True, text=True, timeout=LIMIT
        )

    def offered(line: str) -> list[str]:
        words = line.split(" ")
        script = (
            'eval "$(numalloc --show-completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1));'
            ' "$(complete -p numalloc | sed "s/.*-F //; s/ .*//")" numalloc; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = run(script, *words)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    offered.run = run
    return offered


def test_commands_and_options(bash):
    assert bash("numalloc st") == ["stat"]
    assert {"run", "top", "lab", "doctor"} <= set(bash("numalloc "))
    assert set(bash("numalloc exporter --")) == {"--pid", "--name", "--port", "--address", "--help"}
    assert {option.flag for option in options()} <= set(bash("numalloc run --"))
    assert bash("numalloc lab r") == ["run"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("numalloc run --allocator ", list(NAMES)),
        ("numalloc run --allocator nu", ["numalloc"]),
        ("numalloc run --allocator glibc --threads s", ["sparse"]),
        ("numalloc run --memory p", ["preferred:"]),
        ("numalloc run --thp o", ["on", "off"]),
        ("numalloc run --purge-delay x", []),
        ("numalloc tune --allocators glibc,numa", ["glibc,numalloc"]),
        ("numalloc top --sort ", ["memory", "cpu", "remote", "faults"]),
        ("numalloc demo --program r", ["redis"]),
        ("numalloc profile --by p", ["place"]),
    ],
)
def test_values(bash, line, words):
    assert bash(line) == words


@pytest.mark.full("13 seconds")
def test_every_word_that_an_option_accepts_is_offered(bash):
    for option in generated():
        if option.kind in ("Binding", "MemoryBinding", "Interleave", "HugePages", "DeepBind", "Flag"):
            assert bash(f"numalloc run {option.flag} ") == option.accepted.split(", ")


def test_installed_it_is_read_by_the_next_shell(bash):
    # Followed by another command, so that bash does not become it: which shell to write for is found among its parents.
    assert bash.run("numalloc --install-completion; exit $?").returncode == 0
    done = bash.run("source ~/.bashrc; complete -p numalloc")
    assert done.stdout.rstrip().endswith(" numalloc")
