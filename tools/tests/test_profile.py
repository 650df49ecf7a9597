"""`numalloc profile`: programs with known leaks, the file as pprof reads it, and what is said of bad input."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools.profile import files, names, report
from numalloc_tools.profile.samples import VIEWS, samples

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from numalloc_tools.cli import main; main()", "profile"]
LEAKY = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
static void *kept[2000];
namespace shop {
struct Basket { void *lose(int i); };
__attribute__((noinline)) void *Basket::lose(int i) { return kept[i] = malloc(5000); }
}
__attribute__((noinline)) static void churn() { for (int i = 0; i < 2000; i++) { std::vector<int> some(1000); kept[0] = some.data(); } }
int main(int count, char **words) {
    shop::Basket basket;
    for (int i = 0; i < 2000; i++) basket.lose(i);
    churn();
    if (count > 1 && !strcmp(words[1], "fork")) { if (fork() == 0) { for (int i = 0; i < 2000; i++) basket.lose(i); exit(0); } wait(nullptr); }
    if (count > 1 && !strcmp(words[1], "wait")) { puts("ready"); fflush(stdout); pause(); }
    puts("sold out");
    return 3;
}
"""
LOST = "shop::Basket::lose"
LOST_BYTES = 2000 * 5000


@pytest.fixture(scope="module")
def leaky(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("leaky")
    (folder / "leaky.cpp").write_text(LEAKY)
    subprocess.run(["g++", "-O1", "-g", "-o", folder / "leaky", folder / "leaky.cpp"], check=True, timeout=LIMIT)
    return folder / "leaky"


@pytest.fixture(scope="module")
def recorded(leaky) -> Path:
    """Every allocation of it."""
    file = leaky.parent / "leaky.pb.gz"
    result = profile("--sample", "1", "-o", str(file), "--", str(leaky))
    assert result.returncode == 3, result.stderr
    return file


def profile(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([*COMMAND, *arguments], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT)


def test_leak_is_named_with_its_size(leaky):
    result = profile("--sample", "1", "--leaked", "--json", "--", str(leaky))
    assert result.returncode == 3, result.stderr
    data = json.loads(result.stdout)
    assert "sold out" in result.stderr, "the program's output has to go somewhere"
    first = data["functions"][0]
    assert LOST in first["function"] and first["flat_bytes"] == LOST_BYTES and first["flat_objects"] == 2000
    assert any(name == "main" for name in data["stacks"][0]["stack"])
    assert not [one for one in data["functions"] if "churn" in one["function"]], "what was freed is not leaked"


@pytest.mark.full("draws samples at random")
def test_sampled_leak_is_about_right(leaky):
    result = profile("--sample", "64K", "--leaked", "--json", "--", str(leaky))
    first = json.loads(result.stdout)["functions"][0]
    # 150 records or so: five deviations.
    assert LOST in first["function"] and 0.6 * LOST_BYTES < first["flat_bytes"] < 1.4 * LOST_BYTES


def test_output_of_the_program_is_unchanged(leaky):
    result = profile("--", str(leaky))
    assert (result.returncode, result.stdout) == (3, "sold out\n")
    assert "memory allocated while the program ran" in result.stderr and LOST in result.stderr


def test_two_processes_are_one_profile(leaky):
    result = profile("--sample", "1", "--leaked", "--json", "--", str(leaky), "fork")
    data = json.loads(result.stdout)
    assert "2 processes, merged" in data["notes"]
    # The child has what its parent lost, too.
    assert data["functions"][0]["flat_bytes"] == 3 * LOST_BYTES


def test_views_and_tables_of_a_file(recorded):
    allocated = profile("--show", str(recorded), "--by", "stack").stdout
    assert re.search(r"\bchurn\b", allocated), allocated
    live = profile("--show", str(recorded), "--live").stdout
    assert "churn" not in live and LOST in live
    places = profile("--show", str(recorded), "--by", "place").stdout
    assert "thread's node" in places and "pages on" in places, places


def test_sampled_profile_has_records_and_errors(recorded, tmp_path):
    """1 - exp(-5000 / 65536) of 2000 objects, and sqrt((1 - that) / records)."""
    every = json.loads(profile("--show", str(recorded), "--live", "--json").stdout)
    assert every["functions"][0]["flat_records"] is None and every["error"] is None
    assert "records" not in profile("--show", str(recorded), "--live").stdout
    sampled = files.read(recorded)
    sampled.period = 65536
    files.write(sampled, tmp_path / "sampled.pb")
    first = json.loads(profile("--show", str(tmp_path / "sampled.pb"), "--live", "--json").stdout)["functions"][0]
    assert LOST in first["function"] and (first["flat_records"], first["flat_error"]) == (147, 0.0794)
    for by in ("function", "stack", "place"):
        shown = profile("--show", str(tmp_path / "sampled.pb"), "--live", "--by", by).stdout
        assert re.search(r"objects \(±7\.9 %, by about 14\d records\)", shown) and re.search(r" 14\d +±7\.9 % ", shown), shown


def test_profile_may_come_from_a_pipe(recorded):
    whole = profile("--show", str(recorded), "--json").stdout
    for words in ('"$@" --show - --json <"$0"', 'cat "$0" | "$@" --show /dev/stdin --json', '"$@" --show <(cat "$0") --json'):
        done = subprocess.run(["bash", "-c", words, recorded, *COMMAND], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
        assert (done.returncode, done.stdout, done.stderr) == (0, whole, ""), words
    for words, said in (
        ('"$@" --show - </dev/null', "standard input is not a profile; accepted: a file in pprof's format"),
        ('"$@" --show - <&-', "standard input is not a profile"),
        ('"$@" --show /', "--show: / cannot be read (Is a directory); accepted: a profile"),
    ):
        done = subprocess.run(["bash", "-c", words, recorded, *COMMAND], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1) and said in done.stderr, done.stderr


def test_flame_graph_is_an_image_with_titles(recorded, tmp_path):
    picture = tmp_path / "flame.svg"
    assert profile("--show", str(recorded), "--live", "--flame", str(picture)).returncode == 0
    root = xml.parse(picture).getroot()
    name = "{http://www.w3.org/2000/svg}"
    frames = {frame.get("data-name"): frame for frame in root.iter(f"{name}g")}
    lost = next(frame for known, frame in frames.items() if LOST in known)
    assert re.search(r"9\.5 MiB, \d+\.\d % of all, 0\.0 % of it remote", lost.find(f"{name}title").text)
    # Callees lie on their callers, and are no wider.
    assert float(lost.get("data-w")) <= float(frames["main"].get("data-w")) and int(lost.get("data-y")) > int(frames["main"].get("data-y"))


@pytest.mark.full("compiles Go's pprof, a minute and more")
@pytest.mark.skipif(not (shutil.which("go") or Path("/usr/local/go/bin/go").is_file()), reason="Go's pprof is not here")
def test_pprof_opens_it(recorded, leaky, tmp_path):
    go = shutil.which("go") or "/usr/local/go/bin/go"
    # Once with our names, once as the library wrote it: then pprof looks for them itself.
    raw = tmp_path / "raw.pb"
    environment = {
        "LD_PRELOAD": f"{ROOT}/build/release/libnumalloc.so:libgcc_s.so.1",
        "NUMALLOC_PROFILE": "1",
        "NUMALLOC_PROFILE_FILE": str(raw),
    }
    subprocess.run([leaky], env=os.environ | environment, stdout=subprocess.DEVNULL, timeout=LIMIT)

    def pprof(*arguments: str) -> str:
        text = subprocess.run(
            [go, "tool", "pprof", *arguments],
            capture_output=True,
            text=True,
            env=os.environ | {"PPROF_TMPDIR": str(tmp_path)},
            timeout=LIMIT,
        )
        assert text.returncode == 0, text.stderr
        return text.stdout

    top = pprof("-top", "-sample_index=inuse_objects", str(recorded))
    first = next(line for line in top.splitlines() if re.match(r"\s*\d+\s+[\d.]+%", line))
    assert "Basket::lose" in first and first.split()[0] == "2000", top
    by_label = pprof("-top", "-sample_index=inuse_space", "-tagfocus=remote_pages=no", str(recorded))
    assert "9.54MB" in by_label and "tagfocus=remote_pages=no" in by_label, by_label
    # The line of the malloc, and the file by its build id.
    line = 1 + LEAKY[: LEAKY.index("malloc(5000)")].count("\n")
    found = pprof("-raw", str(raw))
    assert f"leaky.cpp:{line}" in found, found
    assert re.search(rf"{leaky} [0-9a-f]{{40}}", found), found


def test_cpp_names_are_short_in_tables():
    assert report.shortened("std::vector<int, std::allocator<int> >::vector(unsigned long, int const&)") == "std::vector<>::vector"
    assert report.shortened("shop::(anonymous namespace)::f(int)") == "shop::(anonymous namespace)::f"
    assert report.shortened("Key::operator<(Key const&) const") == "Key::operator<"
    assert report.shortened("Call::operator()(int)") == "Call::operator()"
    assert report.shortened("(no stack)") == "(no stack)"
    assert report.shortened("main") == "main"


def test_names_come_without_the_tools_too(recorded, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    profile = files.read(recorded)
    for location in profile.location:
        del location.line[:]
    names.add_names(profile)
    found = samples(profile, VIEWS["leaked"])
    assert any("Basket" in name for sample in found for name in sample.stack)


@pytest.mark.full("a terminal")
def test_interrupt_ends_the_program_and_shows_its_profile(leaky):
    main, other = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "--sample", "1", "--on-signal", "--", str(leaky), "wait"],
        cwd=ROOT,
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )
    os.close(other)
    said = b""
    deadline = time.monotonic() + 60
    while b"ready" not in said and time.monotonic() < deadline:
        said += os.read(main, 4096)
    os.write(main, b"\x03")
    try:
        while chunk := os.read(main, 4096):
            said += chunk
    except OSError:
        pass
    assert process.wait(timeout=LIMIT) == 128 + signal.SIGINT
    assert LOST.encode() in said and b"Traceback" not in said, said.decode()


@pytest.mark.parametrize(
    ("arguments", "status", "named"),
    [
        ([], 2, "no program is given"),
        (["--show", "/nowhere.pb"], 2, "--show: /nowhere.pb cannot be read (No such file or directory); accepted: a profile"),
        (["--show", "/bin/sh"], 2, "/bin/sh is not a profile"),
        (["--show", "/bin/sh", "--", "ls"], 2, "both a program and --show"),
        (["--", "/nowhere/program"], 127, "/nowhere/program"),
        (["--sample", "many", "--", "ls"], 2, "'many' is not understood; accepted: 1 to 1G"),
        (["--sample", "2G", "--", "ls"], 2, "--sample: '2G'"),
        (["--by", "moon", "--", "ls"], 2, "accepted: function, stack, place"),
        (["--rows", "0", "--", "ls"], 2, "--rows: 0"),
        (["--live", "--leaked", "--", "ls"], 2, "accepted: one of them"),
        (["-o", "/nowhere/x", "--", "ls"], 2, "--output: the folder of /nowhere/x"),
        (["--library", "/nowhere.so", "--", "ls"], 2, "/nowhere.so is not a file"),
        (["--", "/bin/sh", "-c", "kill -9 $$"], 137, "left no profile"),
    ],
)
def test_bad_input_is_one_line(arguments, status, named):
    result = profile(*arguments)
    assert result.returncode == status, result.stderr
    assert named in result.stderr and result.stderr.count("\n") == 1, result.stderr
