"""`numalloc bench --programs`: programs that a file of TOML describes, run under a library that changes nothing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools.allocators import Allocator
from numalloc_tools.bench import manifest
from numalloc_tools.bench.manifest.keys import TABLE, markdown
from numalloc_tools.problem import Problem
from numalloc_tools.programs import BROUGHT, Work

ROOT = Path(__file__).resolve().parents[2]
PLAIN = Allocator("glibc")
COUNTS = r"""
name = "counts"
sizes = { ROUNDS = 100 }
paper = { ROUNDS = 5000 }
threads = [1, 2, 4]
build = ['printf "import sys\nprint(chr(114) + \"ounds\", sys.argv[1], \"threads\", sys.argv[2], \"in\", 0.25)" > $BUILT/work.py']
prepare = ["echo here > input"]
command = "python3 $BUILT/work.py $ROUNDS $THREADS"
metric = { seconds = 'in ([\d.]+)' }
check = '^rounds \d+'
verify = "grep -q here input"
"""


def read(tmp_path, text: str, taken=()):
    path = tmp_path / "programs.toml"
    path.write_text("[[program]]\n" + text)
    return manifest.programs([path], set(taken))


def test_program_is_built_prepared_run_measured_and_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    [one] = read(tmp_path, COUNTS)
    assert (one.kind, one.threads, one.standard_threads, one.paper, one.missing) == (BROUGHT, (1, 2, 4), 2, True, "")
    ended = one.run(PLAIN, Work(2, 0.5, limit=LIMIT))
    assert (ended.status, ended.reason) == ("ok", "")
    assert ended.stdout.split()[:4] == ["rounds", "50", "threads", "2"]
    assert ended.figures["seconds"] == 0.25
    assert one.run(PLAIN, Work(1, 0.5, limit=LIMIT, paper=True)).stdout.split()[1] == "2500"


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        (("check = '^rounds", "check = '^circles"), "wrong", "it did not print '^circles"),
        (("in (", "under ("), "wrong", "it did not print its seconds"),
        (("grep -q here", "grep -q there"), "wrong", "ended with status 1"),
        (("echo here > input", "exit 7"), "failed", "prepare: 'exit 7' ended with status 7"),
        (("$BUILT/work.py $ROUNDS", "$BUILT/none.py $ROUNDS"), "failed", "python3 ended with status 2"),
        (("build = [", 'build = ["echo no compiler; false", '), "failed", "build: "),
    ],
)
def test_failures_give_reasons(tmp_path, monkeypatch, change, status, reason):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert change[0] in COUNTS
    [one] = read(tmp_path, COUNTS.replace(*change))
    ended = one.run(PLAIN, Work(2, 0.5, limit=LIMIT))
    assert ended.status == status
    assert reason in ended.reason and "\n" not in ended.reason


@pytest.mark.parametrize(("check", "status"), [("ok", "ok"), ("bad", "wrong")])
def test_line_of_json_has_all_figures(tmp_path, check, status):
    line = f'{{"seconds": 2.5, "q5_seconds": 0.5, "check": "{check}"}}'
    [one] = read(tmp_path, f"name = 'one'\nmetric = 'json'\ncommand = \"\"\"echo '{line}'\"\"\"\n")
    ended = one.run(PLAIN, Work(1, 1.0, limit=LIMIT))
    assert (ended.status, ended.figures.get("q5_seconds")) == (status, 0.5)


@pytest.mark.full("a port that another process may take first")
def test_server_is_started_awaited_loaded_and_stopped(tmp_path):
    [one] = read(
        tmp_path,
        r"""
name = "pages"
server = "python3 -m http.server --bind 127.0.0.1 $PORT"
prepare = ["echo content > page"]
ready = "python3 -c 'import os, socket; socket.create_connection((\"127.0.0.1\", int(os.environ[\"PORT\"])))'"
load = '''python3 -c "
import os, urllib.request
for _ in range(5): print(urllib.request.urlopen('http://127.0.0.1:' + os.environ['PORT'] + '/page').read().decode())
print('20 a second')" '''
stop = "SIGINT"
metric = { rate = '^(\d+) a second' }
check = '^content'
""",
    )
    ended = one.run(PLAIN, Work(1, 1.0, limit=LIMIT))
    assert (ended.status, ended.reason) == ("ok", "")
    assert ended.figures["seconds"] == pytest.approx(1 / 20)


GOOD = 'name = "one"\ncommand = "true"\nverify = "true"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD + "colour = 3", "one: 'colour' is unknown; accepted: name, family"),
        (GOOD + "threads = [0]", "one: threads is [0]; accepted: a list of numbers from 1 to 10000"),
        (GOOD + "check = '('", "one: check is '('; accepted: a regular expression"),
        (GOOD + "metric = { rate = 'x' }", 'accepted: "wall", "json", or { seconds'),
        (GOOD + "sizes = { RUN = 3 }", "one: sizes is {'RUN': 3}; accepted: a table of integers above 0 with names in capitals"),
        (GOOD + "sizes = { A = 3 }\npaper = { B = 3 }", "'A' is only in one of sizes and paper"),
        (GOOD + "stop = 'SIGNOTHING'", "accepted: a signal such as SIGTERM"),
        (GOOD + 'server = "true"', "both of command and server"),
        ('name = "one"\ncheck = "a"', "neither of command and server"),
        ('name = "one"\nserver = "true"\ncheck = "a"\nready = "true"', "load is missing; accepted: server, ready and load together"),
        (GOOD + 'load = "true"', "load is for a server"),
        (
            'name = "one"\ncommand = "true"',
            "without check and verify nobody knows whether its data were right; accepted: check, verify or both",
        ),
        ('name = "Large"\ncommand = "true"', "Large: name is 'Large'; accepted: small letters, digits and -"),
        ('command = "true"\ncheck = "a"', "program 1: the name is missing"),
        (GOOD + f"[[program]]\n{GOOD}", "'one' is not free"),
        ("name = ", "is not TOML"),
    ],
)
def test_bad_file_is_refused_with_a_line(tmp_path, text, said):
    with pytest.raises(Problem) as refused:
        read(tmp_path, text)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_file_without_programs_is_refused(tmp_path):
    for text, said in (("", "no program is in it"), ("[[programs]]\nname = 'a'", "'programs' is unknown")):
        (tmp_path / "file.toml").write_text(text)
        with pytest.raises(Problem, match=said):
            manifest.programs([tmp_path / "file.toml"], set())
    with pytest.raises(Problem, match="cannot be read"):
        manifest.programs([tmp_path / "none.toml"], set())


def test_missing_packages_are_named(tmp_path):
    [one] = read(tmp_path, GOOD + 'needs = { no-such-command = "package-b", "/no/*/such" = "package-a", sh = "dash" }')
    assert one.missing == "not installed: apt install package-a package-b"
    [other] = read(tmp_path, GOOD.replace("one", "other") + 'user = "nobody-of-this-name"')
    assert other.missing == "the user nobody-of-this-name does not exist here"


def test_command_line_runs_only_the_programs_of_the_file(tmp_path):
    library = tmp_path / "build/release/libnumalloc.so"
    compiler = shutil.which("cc") or pytest.skip("no compiler here")
    library.parent.mkdir(parents=True)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench/programs.json").write_text('{"programs": []}')
    subprocess.run(
        [compiler, "-x", "c", "-", "-shared", "-fPIC", "-o", library], input="int changes_nothing;", text=True, check=True, timeout=LIMIT
    )
    (tmp_path / "own.toml").write_text('[[program]]\nname = "seq"\ncommand = "seq 100"\ncheck = "^100$"\n')
    words = ["bench", "--programs", "own.toml", "--library", library, "--allocators", "numalloc,glibc", "--rounds", "1"]
    done = subprocess.run([Path(sys.executable).with_name("numalloc"), *words], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    from numalloc_tools.bench.results import read as results

    found = results(tmp_path / "numalloc-bench.json")
    assert {(run.program, run.allocator, run.status) for run in found.runs} == {("seq", name, "ok") for name in ("numalloc", "glibc")}
    quick = subprocess.run(
        [Path(sys.executable).with_name("numalloc"), *words, "--quick"], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT
    )
    assert quick.returncode == 0, quick.stderr
    assert results(tmp_path / "numalloc-bench.json").runs, "who names a file means its programs, short or not"
    paper = subprocess.run(
        [Path(sys.executable).with_name("numalloc"), *words, "--paper"], cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT
    )
    assert (paper.returncode, "none of these programs has paper sizes" in paper.stderr) == (2, True)


def test_document_has_the_table():
    assert markdown() in (ROOT / "docs/programs.md").read_text(), (
        "docs/programs.md: python3 -c 'from numalloc_tools.bench.manifest.keys import markdown; print(markdown())'"
    )
    assert set(TABLE) >= {"build", "command", "metric", "check", "threads"}
