"""Real programs of `numalloc bench`: each once, tiny, under a library that changes nothing and one that breaks it."""

import shutil
import subprocess
from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools.allocators import Allocator
from numalloc_tools.programs import Program, Work, real
from numalloc_tools.programs.real import gcc, server

pytestmark = pytest.mark.full("runs this machine's own programs and servers")

PROGRAMS = {program.name: program for program in real.programs()}
TINY = 0.01


@pytest.fixture(scope="module")
def libraries(tmp_path_factory) -> dict[str, Path]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no compiler here")
    folder = tmp_path_factory.mktemp("libraries")
    folder.chmod(0o755)
    sources = {
        "nothing": "int changes_nothing;",
        "breaks": "#include <stdlib.h>\n#include <string.h>\n__attribute__((constructor)) static void end(void) { abort(); }",
    }
    for name, text in sources.items():
        subprocess.run(
            [compiler, "-x", "c", "-", "-shared", "-fPIC", "-o", str(folder / f"{name}.so")],
            input=text,
            text=True,
            check=True,
            timeout=LIMIT,
        )
    return {name: folder / f"{name}.so" for name in sources}


def ready(name: str) -> Program:
    program = PROGRAMS[name]
    if program.missing:
        pytest.skip(program.missing)
    return program


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_runs_and_is_measured(name, libraries):
    program = ready(name)
    ended = program.run(Allocator("other", (libraries["nothing"],)), Work(program.standard_threads, TINY, limit=60, sample=True))
    assert (ended.status, ended.reason) == ("ok", "")
    assert ended.figures["seconds"] > 0
    assert ended.figures["peak_bytes"] > 1 << 20
    assert ended.figures["settled_bytes"] > 1 << 20


@pytest.mark.parametrize("name", ["perl", "redis"])
def test_program_that_cannot_start_is_reported(name, libraries):
    ended = ready(name).run(Allocator("other", (libraries["breaks"],)), Work(1, TINY, limit=60))
    assert ended.status == "crash"
    assert "SIGABRT" in ended.reason


def test_other_output_is_a_wrong_answer(libraries, monkeypatch):
    ready("gcc")
    monkeypatch.setattr("numalloc_tools.programs.real.command._digest", lambda ended, output, seen=[]: seen.append(1) or str(len(seen)))
    ended = gcc.run(Allocator("other", (libraries["nothing"],)), Work(1, TINY, limit=60))
    assert (ended.status, ended.reason) == ("wrong", "gcc: its output differs from that without the allocator")


def test_client_that_fails_is_a_failed_run(tmp_path, libraries):
    def load():
        raise server.LoadFailed("the client saw another value")

    ended = server.served(
        ["sleep", "60"],
        Allocator("other", (libraries["nothing"],)),
        Work(1, TINY, limit=60),
        tmp_path,
        lambda: True,
        load,
        None,
        lambda running: None,
        expected=(0,),
    )
    assert (ended.status, ended.reason) == ("failed", "the client saw another value")
