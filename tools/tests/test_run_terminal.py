"""`numalloc run` in a pseudo-terminal, with this test in the shell's place: Ctrl-C, Ctrl-Z, window, who is in front."""

import os
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
from fcntl import ioctl

import pytest
from limits import LIMIT

pytestmark = pytest.mark.full("a shell in a terminal: tens of seconds, and races of the shell's own")

COMMAND = [sys.executable, "-c", "from numalloc_tools.cli import main; main()", "run"]
STAYS = pytest.mark.parametrize("stays", [[], ["--report"]], ids=["becomes it", "stays"])
PATIENCE = 30
PROMPT = b"<<at your command>> "


# A shell's trap would come too late to tell two signals from one.
COUNTS_INTERRUPTS = """
import os, signal, sys, time
count = 0
def interrupted(number, frame):
    global count
    count += 1
    os.write(1, b"got %d\\n" % count)  # print() may be what was interrupted
signal.signal(signal.SIGINT, interrupted)
os.write(1, b"ready\\n")
while count < 2:
    time.sleep(0.1)
sys.exit(5)
"""


class Terminal:
    """A command that leads a session on a terminal of its own."""

    def __init__(self, *words: str, command: list[str] = COMMAND):
        self.ours, theirs = os.openpty()
        self.before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(
            [*command, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: (signal.signal(signal.SIGINT, signal.SIG_DFL), ioctl(0, termios.TIOCSCTTY, 0)),
        )
        os.close(theirs)
        self.shown = b""
        self.is_open = True

    def type(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def wait_for(self, text: bytes) -> None:
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.ours], [], [], left)[0], f"waited for {text!r}, saw {self.shown!r}"
            try:
                self.shown += os.read(self.ours, 65536)
            except OSError:  # everybody has closed it
                raise AssertionError(f"waited for {text!r}, saw {self.shown!r}") from None

    def end(self) -> int:
        """Its status; the terminal is as it was."""
        try:
            self.read_all()
            status = self.process.wait(timeout=PATIENCE)
            assert termios.tcgetattr(self.ours) == self.before
            return status
        finally:
            self.close()

    def close(self) -> None:
        """Whoever is left on it is hung up on, so that nothing outlives its test."""
        if self.is_open:
            self.is_open = False
            os.close(self.ours)
            self.process.kill()
            self.process.wait(timeout=LIMIT)

    def wait_for_prompt(self) -> None:
        """A shell that is not at its prompt yet loses keys: it changes the terminal's mode first. What was shown before is forgotten."""
        self.wait_for(PROMPT)
        self.shown = self.shown.partition(PROMPT)[2]

    def read_all(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None or select.select([self.ours], [], [], 0)[0]:
            assert time.monotonic() < deadline, f"did not end; saw {self.shown!r}"
            if select.select([self.ours], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self.ours, 65536)
                except OSError:
                    return


@pytest.fixture
def open_terminal():
    opened = []

    def opens(*words: str, **named) -> Terminal:
        opened.append(Terminal(*words, **named))
        return opened[-1]

    yield opens
    for terminal in opened:
        terminal.close()


def state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def wait_until(condition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@STAYS
def test_program_has_the_terminal(stays, open_terminal):
    """It is in front, all three streams are the terminal, and it knows the window."""
    terminal = open_terminal(*stays, "--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && stty rows 33 && stty size; exit 4")
    assert terminal.end() == 4
    assert b"33 " in terminal.shown


@STAYS
def test_interrupt_key_ends_it_as_the_shell_expects(stays, open_terminal):
    terminal = open_terminal(*stays, "--", "sh", "-c", "sleep 0.3; echo ready; exec sleep 100")
    terminal.wait_for(b"ready")
    terminal.type(b"\x03")
    assert terminal.end() == -signal.SIGINT
    assert (b"CPU time" in terminal.shown) == bool(stays)
    assert b"Traceback" not in terminal.shown


@STAYS
def test_program_that_takes_the_interrupt_key_gets_it_once(stays, open_terminal):
    terminal = open_terminal(*stays, "--", sys.executable, "-c", COUNTS_INTERRUPTS)
    terminal.wait_for(b"ready")
    terminal.type(b"\x03")
    terminal.wait_for(b"got 1")
    time.sleep(0.5)
    assert terminal.process.poll() is None, "a second one has come"
    terminal.type(b"\x03")
    terminal.wait_for(b"got 2")
    assert terminal.end() == 5


@STAYS
def test_stop_key_and_continue(stays, open_terminal):
    """As a shell does it: it sees the stop, and sends the whole job on."""
    terminal = open_terminal(*stays, "--", "sh", "-c", "echo ready $$; read line; echo read $line; exit 6")
    terminal.wait_for(b"ready")
    terminal.wait_for(b"\n")
    # The terminal's stop does nothing to a group that no shell looks after, so the shell sends it.
    program = int(terminal.shown.split()[1])
    os.killpg(terminal.process.pid, signal.SIGSTOP)
    wait_until(lambda: state(terminal.process.pid) == "T" and state(program) == "T")
    os.killpg(terminal.process.pid, signal.SIGCONT)
    wait_until(lambda: state(terminal.process.pid) != "T" and state(program) != "T")
    terminal.type(b"on it goes\n")
    terminal.wait_for(b"read on it goes")
    assert terminal.end() == 6


@STAYS
def test_job_control_of_a_real_shell(stays, open_terminal):
    """Ctrl-Z, fg, and the status afterwards. What is typed is shown too, and is written otherwise than what is waited for."""
    shell = open_terminal("--norc", "--noprofile", "-i", command=["env", f"PS1={PROMPT.decode()}", "bash"])
    line = shlex.join([*COMMAND, *stays, "--", "sh", "-c", 'echo re""ady; read line; echo has $line; exit 7'])
    shell.wait_for_prompt()
    shell.type(f"{line}\n".encode())
    shell.wait_for(b"ready")
    shell.type(b"\x1a")
    shell.wait_for(b"Stopped")
    shell.wait_for_prompt()
    shell.type(b"fg\n")
    shell.wait_for(b"exit 7")  # the job's line, which fg writes when the terminal has its old mode again
    shell.type(b"a line\n")
    shell.wait_for(b"has a line")
    shell.wait_for_prompt()
    shell.type(b'echo sta""tus $?\n')
    shell.wait_for(b"status 7")
    shell.wait_for_prompt()
    shell.type(b"exit\n")
    shell.read_all()
    shell.process.wait(timeout=PATIENCE)


def test_stop_of_the_program_alone_reaches_the_waiting_parent(open_terminal):
    """A program that stops itself gives the terminal back to the shell: so this command stops with it."""
    terminal = open_terminal("--report", "--", "sh", "-c", "echo ready; kill -STOP $$; echo on; exit 8")
    terminal.wait_for(b"ready")
    wait_until(lambda: state(terminal.process.pid) == "T")
    terminal.process.send_signal(signal.SIGCONT)
    terminal.wait_for(b"on\r\n")
    assert terminal.end() == 8


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGINT, signal.SIGPROF, signal.SIGWINCH, 40])
def test_signals_to_the_parent_reach_the_program(number):
    # Not sh, which may know no more than the names of old.
    script = f"trap 'echo got it; exit 9' {int(number)}; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        [*COMMAND, "--report", "--", "bash", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    out, error = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (9, "got it\n")
    assert "status 9" in error


def test_program_ends_with_a_parent_that_is_killed():
    words = [*COMMAND, "--report", "--", "sh", "-c", "echo $$; exec sleep 100"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    program = int(process.stdout.readline())
    process.kill()
    process.wait(timeout=LIMIT)
    wait_until(lambda: not os.path.exists(f"/proc/{program}") or state(program) == "Z")
