"""Commands whose standard streams are closed, full, or left by who read them."""

import os
import subprocess

import pytest
from limits import LIMIT
from observed import COMMAND

CLOSED = "numalloc: output: Bad file descriptor\n"


def shell(words: str, *arguments: str) -> subprocess.CompletedProcess:
    """The command as "$@" in the words of a shell."""
    return subprocess.run(
        ["bash", "-c", words, "bash", *COMMAND, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT
    )


@pytest.mark.parametrize(
    "arguments",
    [("stat", str(os.getpid())), ("top", "--count", "1"), ("doctor",), ("doctor", "--json"), ("topology",), ("--help",)],
    ids=["stat", "top", "doctor", "doctor as data", "topology", "help"],  # without the PID: pytest-xdist compares them
)
def test_output_that_cannot_be_written_is_one_line(arguments):
    closed = shell('"$@" >&-', *arguments)
    assert (closed.returncode, closed.stderr) == (125, CLOSED)
    full = shell('"$@" >/dev/full', *arguments)
    assert (full.returncode, full.stderr) == (125, "numalloc: output: No space left on device\n")


def test_reader_that_left_causes_no_message():
    done = shell('"$@" | true; exit ${PIPESTATUS[0]}', "stat", str(os.getpid()), "--watch", "0.1", "--count", "20")
    assert (done.returncode, done.stderr) == (1, "")


def test_commands_work_with_closed_streams():
    done = shell('"$@" <&-', "top", "--count", "1", str(os.getpid()))
    assert done.returncode == 0 and f"process {os.getpid()}" in done.stdout
    done = shell('"$@" 2>&-', "stat", "nonsense")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_programs_that_are_started_find_a_stream_closed_too():
    done = shell('"$@" <&-', "run", "--allocator", "glibc", "--", "sh", "-c", "readlink /proc/$$/fd/0 || echo closed")
    assert (done.returncode, done.stdout) == (0, "closed\n"), done.stderr
