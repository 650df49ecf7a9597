"""`numalloc tune` with real programs: what it finds, what it leaves behind, and how it ends."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from limits import LIMIT, alive, children_named, running_in, wait_until
from numalloc_tools import processes
from numalloc_tools.launch import Setting, profile
from numalloc_tools.tune import measure

NUMALLOC = [sys.executable, "-c", "from numalloc_tools.cli import main; main()"]
ROOT = Path(__file__).resolve().parents[2]
TWO = ["--allocators", "numalloc,glibc", "--fix", "huge-pages=default", "--seed", "1"]

# A block so large that glibc gives it back each time, so that the kernel clears its pages again and again.
LARGE_BLOCKS = """
#include <stdlib.h>
int main(void) {
    for (int round = 0; round < 12; round++) {
        char *block = malloc(48 << 20);
        for (size_t at = 0; at < 48 << 20; at += 4096) block[at] = 1;
        __asm__ volatile("" : : "r"(block) : "memory");
        free(block);
    }
    return 0;
}
"""
# A number drawn by how often the program has run, so that a test sees the same each time.
DRAWN = """
count=$(cat count 2>/dev/null || echo 0)
echo $((count + 1)) >count
number=$(((count * 1103515245 + 12345) / 65536 %% 1000))
case "$LD_PRELOAD" in *libnumalloc*) scale=%d ;; *) scale=1000 ;; esac
echo "rate: 1"
echo "rate: $((scale * (10000 + number)))"
"""


def tune(*words, cwd, **environment: str) -> subprocess.CompletedProcess:
    command = [*NUMALLOC, "tune", *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=LIMIT)


@pytest.fixture(autouse=True)
def library_is_built():
    if not (ROOT / "build/release/libnumalloc.so").is_file():
        pytest.fail("build/release/libnumalloc.so is missing; build it with cmake --build --preset release")


@pytest.fixture
def large_blocks(tmp_path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("no compiler here")
    source, program = tmp_path / "large.c", tmp_path / "large-blocks"
    source.write_text(LARGE_BLOCKS)
    subprocess.run([compiler, "-O1", str(source), "-o", str(program)], check=True, timeout=LIMIT)
    return program


def drawn(folder: Path, scale: int = 1000) -> Path:
    program = folder / "drawn.sh"
    program.write_text("#!/bin/sh\n" + DRAWN % scale)
    program.chmod(0o755)
    return program


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.full("the faster one is found by time")
def test_a_faster_setting_and_its_reasons_are_found(large_blocks, tmp_path):
    done = tune("--runs", "30", *TWO, "--json", "--", large_blocks, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["verdict"] == "better"
    assert result["chosen"]["allocator"] == "numalloc"
    assert result["command"].startswith("numalloc run ") and result["command"].endswith(f"-- {large_blocks}")
    assert result["confirmation"][0]["interval"][1] < 1
    assert {one["counter"]: one["differs"] for one in result["why"]}["page faults"], "the kernel clears fewer pages"
    folder = tmp_path / "numalloc-tune"
    assert {path.name for path in folder.iterdir()} == {"runs.jsonl", "setting.toml", "plot.png"}
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")
    fields = profile.load(folder / "setting.toml")
    assert Setting(**fields).flags() == result["command"].split(" -- ")[0].split()[2:]
    assert len(lines(folder / "runs.jsonl")) == result["runs"] + 1 <= 31
    peaks = {row["name"]: row["peak_bytes"] / 2**20 for row in result["race"]}
    assert 48 <= peaks["glibc"] < 60


@pytest.mark.full("the faster one is found by time")
def test_the_table_shows_the_command(large_blocks, tmp_path):
    done = tune("--runs", "30", *TWO, "--output", "here", "--", large_blocks, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for said in ("the baseline", "Measured again", "    numalloc run", "page faults:", "profile: here/setting.toml"):
        assert said in done.stdout
    assert "allocators, block 1" in done.stderr, "where no terminal is, progress is lines"
    again = tune("--runs", "30", *TWO, "--output", "here", "--", large_blocks, cwd=tmp_path)
    assert again.returncode == 2 and "contains the runs of a search" in again.stderr


def test_nothing_is_proposed_where_nothing_differs(tmp_path):
    done = tune("--runs", "40", *TWO, "--metric", "^rate: ([0-9]+)", "--higher", "--", drawn(tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "No significant difference" in done.stdout
    assert "numalloc run" not in done.stdout
    assert not (tmp_path / "numalloc-tune/setting.toml").exists()


@pytest.mark.parametrize(("way", "chosen"), [("--higher", "numalloc"), ("--lower", None)])
def test_a_metric_of_the_program_decides(tmp_path, way, chosen):
    """The rate is a fifth higher under numalloc."""
    program = drawn(tmp_path, 1200)
    done = tune("--runs", "30", *TWO, "--metric", "^rate: ([0-9]+)", way, "--json", "--", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["chosen"]
    assert found and found["allocator"] == chosen if chosen else found is None


@pytest.mark.full("asserts resident memory")
def test_less_memory_is_a_second_aim(tmp_path):
    """Under numalloc the program takes as long, and holds 80 MiB less."""
    program = tmp_path / "holds"
    program.write_text(
        f"#!{sys.executable}\nimport os, time\n"
        "block = bytearray((20 if 'libnumalloc' in os.environ.get('LD_PRELOAD', '') else 100) << 20)\ntime.sleep(0.1)\n"
    )
    program.chmod(0o755)
    done = tune("--runs", "40", *TWO, "--memory", "--json", "--", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert [one["setting"]["allocator"] for one in result["front"]] == ["numalloc"]
    assert result["aims"][1]["name"] == "peak memory"
    beside = next(one for one in result["confirmation"] if one["aim"] == "peak memory")
    assert beside["interval"][1] < 0.5


def test_a_setting_under_which_the_program_fails_is_named(tmp_path):
    program = tmp_path / "picky"
    program.write_text('#!/bin/sh\ncase "$LD_PRELOAD" in *libnumalloc*) echo broken by it >&2; exit 3 ;; esac\n')
    program.chmod(0o755)
    done = tune("--runs", "15", *TWO, "--", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "numalloc failed: picky ended with status 3; it last said: broken by it" in done.stdout
    done = tune("--runs", "26", *TWO, "--baseline", "numalloc", "--output", "other", "--", program, cwd=tmp_path)
    assert done.returncode == 1
    assert "numalloc: the program fails under numalloc, the baseline: picky ended with status 3" in done.stderr


@pytest.mark.full("a limit of three seconds")
def test_a_run_that_takes_too_long_is_stopped_with_all_it_has_started(tmp_path):
    program = tmp_path / "slow"
    (tmp_path / "sleep").symlink_to(shutil.which("sleep"))
    program.write_text(f'#!/bin/sh\ncase "$LD_PRELOAD" in *libnumalloc*) {tmp_path}/sleep 1000 & {tmp_path}/sleep 1000 ;; esac\n')
    program.chmod(0o755)
    done = tune("--runs", "15", *TWO, "--limit", "3s", "--", program, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "numalloc failed: slow was stopped after 3" in done.stdout
    assert not running_in(tmp_path)


class Terminal:
    """The command behind a pseudo-terminal, as a user has it."""

    def __init__(self, words, cwd):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvp(NUMALLOC[0], [*NUMALLOC, "tune", *map(str, words)])
        self.said = b""

    def read_until(self, done, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while not done() and time.monotonic() < until:
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.said += os.read(self.master, 65536)
                except OSError:  # the other side has gone, and will have ended soon
                    time.sleep(0.05)
        assert done(), self.said.decode(errors="replace")

    def status(self) -> int:
        code = None

        def ended() -> bool:
            nonlocal code
            if code is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                code = os.waitstatus_to_exitcode(status) if pid else None
            return code is not None

        self.read_until(ended)
        os.close(self.master)
        return code


@pytest.mark.full("a terminal, and 14 seconds")
def test_ctrl_c_keeps_the_results_and_resume_continues(tmp_path):
    """Its sixth run does not end. No time counts, so that the search is the same on a machine that others use."""
    program = tmp_path / "naps"
    program.write_text("#!/bin/sh\necho ran >>calls\necho rate: 1000\n[ $(wc -l <calls) -ne 6 ] || sleep 100\n")
    program.chmod(0o755)
    words = ["--runs", "26", *TWO, "--metric", "^rate: ([0-9]+)", "--lower", "--", program]
    journal = tmp_path / "numalloc-tune/runs.jsonl"
    calls_file = tmp_path / "calls"
    terminal = Terminal(words, tmp_path)
    terminal.read_until(lambda: calls_file.exists() and len(calls_file.read_text().splitlines()) == 6)
    os.write(terminal.master, b"\x03")
    assert terminal.status() == 130
    said = terminal.said.decode(errors="replace")
    assert "Interrupted" in said and "the baseline" in said, "the table so far"
    assert "\x1b[?25h" in said.rpartition("\x1b[?25l")[2] or "\x1b[?25l" not in said, "the cursor is there again"
    assert not running_in(tmp_path)
    kept = journal.read_text()
    with journal.open("a") as file:
        file.write('{"phase": "race", "sta')  # what a machine that goes down leaves
    assert len(kept.splitlines()) == 1 + 5

    done = tune("--resume", journal, *words, cwd=tmp_path)
    assert done.returncode == 2 and "--seed" in done.stderr
    words = [word for word in words if word not in ("--seed", "1")]
    done = tune("--resume", journal, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert journal.read_text().startswith(kept), "nothing that was measured is lost"
    assert 6 < len(lines(journal)) - 1 <= 26
    assert len(calls_file.read_text().splitlines()) == len(lines(journal)), "nothing is measured twice, but for the run that was stopped"

    words[-1] = "/bin/true"
    done = tune("--resume", journal, *words, cwd=tmp_path)
    assert done.returncode == 2 and "belongs to another search: its program is" in done.stderr
    done = tune("--resume", journal, "--fix", "purge-delay=0", *words[:-1], program, cwd=tmp_path)
    assert done.returncode == 2 and "belongs to another search: its space is" in done.stderr


@pytest.mark.full("an interrupt after a fifth of a second")
def test_an_interrupt_during_a_start_leaves_no_process(tmp_path):
    """As on a machine that is so busy that the program's process waits for its turn before exec."""

    class Waits:
        def enter(self) -> None:
            time.sleep(0.5)

        def applied_to(self, environment: dict) -> dict:
            return environment

    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        measure.Program([]).run(Waits(), ["sleep", "5"])
    assert processes.family(os.getpid()) == [os.getpid()]


def test_a_place_for_the_setting_among_the_words(tmp_path):
    """As behind mpirun: the program is what numalloc run starts, and what is before it runs without."""
    script = tmp_path / "inner"
    script.write_text('#!/bin/sh\necho "outer $OUTER inner ${LD_PRELOAD:-nothing}" >>seen\n')
    script.chmod(0o755)
    done = tune("--runs", "15", *TWO, "--json", "--", "env", "OUTER=set", "{}", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    seen = set((tmp_path / "seen").read_text().splitlines())
    assert "outer set inner nothing" in seen
    assert any("libnumalloc.so" in line for line in seen)


BAD = [
    (["--metric", "rate: (", "--higher"], "is not a regular expression"),
    (["--metric", "rate: [0-9]+", "--higher"], "has 0 groups; accepted: one"),
    (["--metric", "rate: ([0-9]+)"], "accepted: one of --higher and --lower"),
    (["--higher"], "accepted: with --metric"),
    (["--runs", "3"], "--runs: 3 is too few; accepted:"),
    (["--budget", "soon"], "--budget: 'soon' is not a time"),
    (["--limit", "0"], "--limit: '0' is not a time"),
    (["--allocators", "scalloc"], "'scalloc' is unknown; accepted: numalloc"),
    (["--fix", "colour=red"], "--fix: 'colour=red' is not understood; accepted: NAME=VALUE"),
    (["--fix", "memory=everywhere"], "'everywhere' is not understood"),
    (["--space", "/nowhere.toml"], "/nowhere.toml cannot be read"),
    (["--baseline", "jemalloc"], "--baseline: 'jemalloc' is unknown; accepted: glibc, numalloc"),
    (["--resume", "/nowhere.jsonl"], "/nowhere.jsonl cannot be read"),
    (["--stdin", "/nowhere"], "--stdin: /nowhere cannot be read"),
    (["--nodes", "8"], "accepted: 1 or more, with {}"),
    (["--least", "100"], "--least: 100 is out of range"),
    (["--output", "/proc/nowhere"], "--output: /proc/nowhere"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_bad_input_is_one_line_and_status_2(tmp_path, words, said):
    done = tune(*words, "--", "/bin/true", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_program_that_is_not_there_is_127(tmp_path):
    done = tune("--", "no-such-program", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (127, "numalloc: no-such-program: no such program\n")


@pytest.mark.full("asserts tenths of a second")
def test_too_little_time_is_reported_after_the_first_run(tmp_path):
    done = tune("--budget", "1s", *TWO, "--", "sleep", "0.3", cwd=tmp_path)
    assert done.returncode == 2
    assert "--budget: 0:01 has room for 3 runs of 0.3" in done.stderr
    assert "; accepted: 0:0" in done.stderr and "or more, for 15 runs" in done.stderr
    done = tune("--budget", "1s", *TWO, "--", "sleep", "100", cwd=tmp_path)
    assert done.returncode == 1 and "sleep was stopped after 1.0 s" in done.stderr


def test_a_metric_that_is_not_printed_is_named(tmp_path):
    done = tune("--runs", "26", *TWO, "--metric", "rate: ([0-9]+)", "--higher", "--", "echo", "hello", cwd=tmp_path)
    assert done.returncode == 1
    assert "'rate: ([0-9]+)' does not match what the program prints; it last said: hello" in done.stderr


@pytest.mark.full("asserts resident memory")
def test_a_space_of_the_users_own(tmp_path):
    (tmp_path / "space.toml").write_text('allocators = ["numalloc"]\nhuge-pages = ["default"]\n[options]\npurge_delay = [0]\n')
    # By its words, since the options of an allocator that time puts behind glibc may not be tried.
    program = tmp_path / "rated"
    program.write_text(
        "#!/bin/sh\ncase $LD_PRELOAD$NUMALLOC_PURGE_DELAY in *numalloc*0) echo rate: 3 ;; *numalloc*) echo rate: 2 ;; *) echo rate: 1 ;; esac\n"
    )
    program.chmod(0o755)
    words = ["--runs", "30", "--space", "space.toml", "--metric", "rate: ([0-9]+)", "--higher", "--json"]
    done = tune(*words, "--", str(program), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    race = json.loads(done.stdout)["race"]
    assert all(row["peak_bytes"] < 10 << 20 for row in race), "what the program held, not the tool that started it"
    tried = {row["name"] for row in race}
    assert tried <= {"glibc", "numalloc", "numalloc purge_delay=0"} and "numalloc purge_delay=0" in tried
    (tmp_path / "space.toml").write_text('threads = "sparse"\n')
    done = tune("--space", "space.toml", "--", "/bin/true", cwd=tmp_path)
    assert done.returncode == 2 and "accepted: a list of values" in done.stderr


def test_sigterm_ends_it_like_ctrl_c(tmp_path):
    program = tmp_path / "sleeps"
    program.write_text("#!/bin/sh\nsleep 1000\n")
    program.chmod(0o755)
    command = [*NUMALLOC, "tune", "--", str(program)]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: children_named(process.pid, "sleep"))
    started = children_named(process.pid, "sleep")
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert not any(alive(one) for one in started)
