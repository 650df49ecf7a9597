"""`numalloc symbolize` through the real command: a report of a program that is built here."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools.preload import our_library

SOURCE = """#include <stdlib.h>
__attribute__((noinline)) char* made_here(void) { char* p = static_cast<char*>(malloc(64)); __asm__ volatile("" : "+r"(p)); return p; }
__attribute__((noinline)) void freed_here(char* p) { free(p); __asm__ volatile(""); }
__attribute__((noinline)) void used_here(volatile char* p) { *p = 1; __asm__ volatile(""); }
int main(void) { char* p = made_here(); freed_here(p); __asm__ volatile("" : "+r"(p)); used_here(p); return 0; }
"""
TWICE = """#include <stdlib.h>
#include <thread>
__attribute__((noinline)) void freed_here(void* p) { free(p); __asm__ volatile(""); }
__attribute__((noinline)) void freed_again(void* p) { freed_here(p); __asm__ volatile(""); }
int main() { void* p = malloc(64); freed_here(p); __asm__ volatile("" : "+r"(p)); std::thread(freed_again, p).join(); }
"""


def numalloc(*words: str, text: str = "") -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", "from numalloc_tools.cli import main; main()", *words]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=LIMIT)


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> str:
    compiler = shutil.which("g++") or pytest.skip("no g++ here")
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "used.cpp").write_text(SOURCE)
    subprocess.run(
        [compiler, "-g", "-O1", "-fno-builtin", "-fno-optimize-sibling-calls", "used.cpp", "-o", "used"],
        cwd=folder,
        check=True,
        timeout=LIMIT,
    )
    # A program in C has libgcc's unwinder only if somebody preloads it; g++ leaves it out of one that needs nothing of it.
    preload = f"{our_library(None)} libgcc_s.so.1"
    env = os.environ | {"LD_PRELOAD": preload, "NUMALLOC_GUARDED": "1"}
    done = subprocess.run([folder / "used"], env=env, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == -11, done
    return done.stderr


def test_names_and_lines(report):
    done = numalloc("symbolize", text=f"before\n{report}behind\n")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "before" and lines[-1] == "behind"
    assert "use after free: write" in lines[1]
    for what, function, number in (("write", "used_here", 4), ("allocated", "made_here", 2), ("freed", "freed_here", 3)):
        at = next(i for i, line in enumerate(lines) if line.startswith(f"numalloc:   {what} by thread"))
        assert f"#0 {function}" in lines[at + 1] and f"used.cpp:{number})" in lines[at + 1]


def test_the_stack_of_a_wrong_free(tmp_path: Path):
    compiler = shutil.which("g++") or pytest.skip("no g++ here")
    (tmp_path / "twice.cpp").write_text(TWICE)
    command = [compiler, "-g", "-O1", "-fno-builtin", "-pthread", "twice.cpp", "-o", "twice"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=LIMIT)
    env = os.environ | {"LD_PRELOAD": our_library(None), "NUMALLOC_BACKTRACE": "1"}
    run = subprocess.run([tmp_path / "twice"], env=env, capture_output=True, text=True, timeout=LIMIT)
    assert run.returncode == -6, run
    lines = numalloc("symbolize", text=run.stderr).stdout.splitlines()
    assert lines[0] == run.stderr.splitlines()[0] and "invalid pointer in free(" in lines[0]
    assert lines[1].startswith("numalloc:   free by thread ")
    assert "#0 freed_here" in lines[2] and "twice.cpp:3)" in lines[2]
    assert any("freed_again" in line and "twice.cpp:4)" in line for line in lines[3:])


def test_a_file_gives_the_same(report, tmp_path: Path):
    file = tmp_path / "errors"
    file.write_text(report)
    assert numalloc("symbolize", str(file)).stdout == numalloc("symbolize", text=report).stdout


def test_frames_without_names_stay():
    text = "numalloc:     #0 0x1234 /not/there+0x34\nnumalloc:     #1 0x99\nother\n"
    done = numalloc("symbolize", text=text)
    assert (done.returncode, done.stdout) == (0, text)


def test_no_such_file():
    done = numalloc("symbolize", "/not/there")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and "/not/there is not a file" in done.stderr
