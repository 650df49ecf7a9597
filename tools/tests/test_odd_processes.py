"""Processes that few people have and everybody meets once, as `stat` and `top` see them."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from doctor_command import LIBRARY, build
from limits import LIMIT, wait_until
from numalloc_tools.machine.online import machine
from numalloc_tools.observe.selection import Selection
from observed import COMMAND, MIB, numalloc, program, stat

CONTROLS = "\x1b[2J\n\x07"
SHOWN = "\\x1b[2J\\n\\x07"


@contextlib.contextmanager
def started(*command: object, **environment: str) -> Iterator[subprocess.Popen]:
    """A program that says 'up' and goes on."""
    process = subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | environment)
    try:
        assert process.stdout.readline() == b"up\n"
        yield process
    finally:
        process.kill()
        process.communicate(timeout=LIMIT)


_FIRST_THREAD_ENDS = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_t first;
static void* rest(void* unused) {
    pthread_join(first, 0);
    memset(malloc(32 << 20), 1, 32 << 20);
    puts("up");
    fflush(stdout);
    for (;;) pause();
    return unused;
}
int main(void) { pthread_t one; first = pthread_self(); pthread_create(&one, 0, rest, 0); pthread_exit(0); }
"""


def test_process_whose_first_thread_has_ended_is_seen(tmp_path):
    with started(build(tmp_path, _FIRST_THREAD_ENDS, "-pthread", name=f"program-{os.getpid()}")) as process:
        seen = stat(process.pid)
        side_by_side = numalloc("top", "--name", f"program-{os.getpid()}", "--count", "2", "--interval", "0.1")
        doctor = numalloc("doctor", process.pid)
        living = next(task for task in os.listdir(f"/proc/{process.pid}/task") if int(task) != process.pid)
    assert seen["anonymous_bytes"] > 32 * MIB
    assert str(process.pid) in side_by_side.stdout
    assert doctor.returncode == 2 and doctor.stderr.count("\n") == 1
    assert "its first thread has ended" in doctor.stderr and doctor.stderr.rstrip().endswith(f"here {living}")


def test_thread_is_no_process():
    with program(then="import threading; threading.Thread(target=input).start()") as process:
        tasks = f"/proc/{process.pid}/task"
        wait_until(lambda: len(os.listdir(tasks)) > 1)
        thread = max(map(int, os.listdir(tasks)))
        done = numalloc("stat", thread)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"numalloc: process {thread} is a thread of process {process.pid}; accepted: the PID of a process\n"


def test_name_prints_no_control_characters():
    """Any process may give itself any name, and others look at it."""
    naming = f"import ctypes; ctypes.CDLL(None).prctl(15, {CONTROLS.encode()!r}, 0, 0, 0); input()"
    with program(then="input()") as other, program(then=naming) as process:
        wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text(errors="replace") == CONTROLS + "\n")
        shown = numalloc("stat", process.pid).stdout
        listed = numalloc("top", process.pid, other.pid, "--count", "1").stdout
        judged = numalloc("doctor", process.pid).stdout
        assert stat(process.pid)["name"] == CONTROLS
    for text in (shown, listed, judged):
        assert "\x1b" not in text and "\x07" not in text and "\\x1b[2J" in text
    assert shown.startswith(f"{SHOWN}, process {process.pid}: ")


def test_library_that_was_replaced_on_disk_is_still_in_the_process(tmp_path):
    if not LIBRARY.is_file():
        pytest.skip("the library is not built")
    copy = tmp_path / "libnumalloc.so"
    shutil.copy(LIBRARY, copy)
    with started("sh", "-c", "echo up; read line", LD_PRELOAD=str(copy)) as process:
        copy.unlink()
        assert stat(process.pid)["under_numalloc"] is True


@pytest.mark.parametrize("command", [("stat", "1"), ("top", "--count", "1"), ("exporter", "--port", "0")], ids=lambda one: one[0])
def test_without_proc_there_is_nothing_to_see(command):
    without = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if subprocess.run([*without, "true"], capture_output=True, timeout=LIMIT).returncode:
        pytest.skip("no mount namespace can be made here")
    done = subprocess.run([*without, *COMMAND, *command], capture_output=True, text=True, timeout=LIMIT)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("numalloc: /proc, which describes processes, is not visible")


def test_another_process_with_the_number_is_not_inspected():
    with program() as process:
        selection = Selection((process.pid,))
        selection.check(machine())
        assert len(selection.moments(machine())) == 1 and not selection.over
        selection.started[process.pid] -= 1  # as if the one that was named had been an earlier one
        assert selection.moments(machine()) == [] and selection.over
