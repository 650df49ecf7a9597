"""`numalloc profile` where things are odd: names that are no text, files that have changed, stacks as deep as other tools'."""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools import symbols
from numalloc_tools.allocators.found import our_library
from numalloc_tools.profile import files, flame, names
from numalloc_tools.profile.samples import Sample

COMMAND = [sys.executable, "-c", "from numalloc_tools.cli import main; main()", "profile"]
LOSES = """
#include <stdlib.h>
%s
__attribute__((noinline)) void *lose(void) { return malloc(5000); }
int main(void) { for (int i = 0; i < 100; i++) *(volatile char *)lose() = 1; return 0; }
"""
BEFORE_IT = "int other(int a) { return a * 3; }  int another(int a) { return a * other(a); }"


def profile(*words, **options) -> subprocess.CompletedProcess:
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, **options, timeout=LIMIT)


def built(folder: Path, before: str = "") -> Path:
    source, program = folder / "loses.c", folder / "loses"
    source.write_text(LOSES % before)
    subprocess.run(["gcc", "-O0", "-funwind-tables", "-Wl,--build-id", source, "-o", program], check=True, timeout=LIMIT)
    return program


@pytest.mark.parametrize(
    "name", ["ü€😀".encode(), b"l\xff", b"\xc0\xafl", b"\xed\xa0\x80l", b"\xf4\x90\x80\x80l", b"\xe2\x82l", b"l\xe2\x82"]
)
def test_any_bytes_in_a_path_leave_a_profile(tmp_path, name):
    """The format's readers refuse a file with a text that is no UTF-8."""
    program = os.path.join(os.fsencode(tmp_path), name)
    shutil.copy(built(tmp_path), program)
    done = profile("--sample", "1", "--", program)
    assert done.returncode == 0, done.stderr
    shown = os.fsdecode(name.decode(errors="surrogateescape").encode(errors="replace"))
    assert (f"{shown}+0x" in done.stderr) or " lose " in done.stderr and name.decode(errors="ignore").encode() == name


def recorded(program: Path) -> Path:
    file = program.with_name("raw.pb")
    words = {"LD_PRELOAD": f"{our_library()}:libgcc_s.so.1", "NUMALLOC_PROFILE": "1", "NUMALLOC_PROFILE_FILE": str(file)}
    subprocess.run([program], env=os.environ | words, check=True, timeout=LIMIT)
    return file


def test_a_rebuilt_program_gives_no_wrong_names(tmp_path):
    program = built(tmp_path)
    file = recorded(program)
    assert " lose " in profile("--show", file).stdout
    built(tmp_path, BEFORE_IT)
    shown = profile("--show", file).stdout
    assert f"{program} has changed since it ran: its functions have no names" in shown
    assert "loses+0x" in shown and " lose " not in shown and "other" not in shown
    shown = shown.replace(str(tmp_path), "")
    assert "malloc" not in shown and "__libc_start" in shown, "other files have theirs"


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert symbols.names_in(str(tmp_path / "pipe"), [0x1000]) == {}


def test_a_file_that_many_processes_have_is_read_once(tmp_path, monkeypatch):
    file = recorded(built(tmp_path))
    asked = []
    monkeypatch.setattr(symbols, "names_in", lambda path, offsets, build_id: asked.append(path) or {})
    names.add_names(files.merged([files.read(file) for _ in range(3)]))
    assert len(asked) == len(set(asked)) >= 2


def test_stacks_may_be_thousands_deep():
    deep = Sample(tuple(f"f{number}" for number in range(3000)), 1, 100)
    drawn = flame.svg([deep, Sample(("g", "f2999"), 1, 100)], "deep")
    assert len(xml.fromstring(drawn).findall("{*}g")) == 3002


def test_two_results_are_not_written_to_one_file(tmp_path):
    done = profile("-o", "same", "--flame", "./same", "--", "sh", "-c", "echo ran", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "accepted: two files" in done.stderr


@pytest.mark.parametrize(("flag", "path"), [("--output", "."), ("--flame", "."), ("--output", "/proc/version")])
def test_an_unwritable_file_is_reported_before_the_program_runs(tmp_path, flag, path):
    if path == "/proc/version" and os.geteuid() == 0:
        pytest.skip("root is told only when it writes")
    done = profile(flag, path, "--", "sh", "-c", "echo ran", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"{flag}: {path} " in done.stderr and "; accepted: a file" in done.stderr


@pytest.mark.parametrize("flag", ["--output", "--flame"])
def test_a_full_disk_does_not_cost_the_report(tmp_path, flag):
    done = profile("--sample", "1", flag, "/dev/full", "--", built(tmp_path))
    assert done.returncode == 2
    assert "memory allocated while the program ran" in done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"numalloc: {flag}: /dev/full cannot be written (No space left on device)")


def test_programs_start_as_under_numalloc_run(tmp_path):
    """What has no first line is a shell's; and who cannot be profiled is told why."""
    program = tmp_path / "script"
    program.write_text(f"exec {built(tmp_path)}\n")
    program.chmod(0o755)
    done = profile("--sample", "1", "--", program)
    assert done.returncode == 0 and " lose " in done.stderr, done.stderr
    program.chmod(0o644)
    done = profile("--", program)
    assert (done.returncode, done.stderr) == (126, f"numalloc: {program}: not executable\n")
    static = tmp_path / "static"
    subprocess.run(["gcc", "-static", tmp_path / "loses.c", "-o", static], check=True, timeout=LIMIT)
    assert "static left no profile (exit status 0): static is linked statically; accepted:" in profile("--", static).stderr


def test_users_hardened_library_is_profiled():
    hardened = our_library().with_name("libnumalloc-hardened.so")
    done = profile("--", "cat", "/proc/self/maps", env=os.environ | {"LD_PRELOAD": str(hardened)})
    assert done.returncode == 0, done.stderr
    assert str(hardened) in done.stdout and str(our_library()) not in done.stdout


def test_digits_are_those_that_the_library_accepts():
    done = profile("--sample", "٣", "--", "true")
    assert done.returncode == 2 and "--sample: '٣' is not understood" in done.stderr
