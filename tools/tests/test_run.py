"""`numalloc run`: the real command becomes real programs; what is refused, and how."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools import preload
from numalloc_tools.allocators.found import our_library
from numalloc_tools.launch.setting import Setting
from numalloc_tools.problem import Problem
from numalloc_tools.run.flags import generated

LIBRARY = str(our_library())
NAME = Path(LIBRARY).name  # with its version, where the name without it is a link
COMMAND = [sys.executable, "-c", "from numalloc_tools.cli import main; main()", "run"]
LAUNCHERS = ("OMPI_", "PMI", "SLURM_", "MPI_", "MV2_")


def beside(name: str) -> str:
    return str(Path(LIBRARY).with_name(name))


def run(*words: object, **options) -> subprocess.CompletedProcess:
    foreign = (*LAUNCHERS, "NUMALLOC_", "LD_PRELOAD")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)} | options.pop("env", {})
    return subprocess.run([*COMMAND, *map(str, words)], env=environment, capture_output=True, text=True, **options, timeout=LIMIT)


def maps_of(*flags: object, **options) -> str:
    done = run(*flags, "--", "cat", "/proc/self/maps", **options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_library_is_in_the_program():
    assert LIBRARY in maps_of()


def test_another_allocator_is_in_the_program():
    found = maps_of("--allocator", beside("libnumalloc-hardened.so"))
    assert "libnumalloc-hardened.so" in found and LIBRARY not in found


def test_glibc_preloads_nothing():
    assert "libnumalloc" not in maps_of("--allocator", "glibc")


def test_users_own_libraries_stay_and_other_allocators_go():
    binding = beside("libnumalloc-binding.so")
    done = run("--show", "--", "true", env={"LD_PRELOAD": f"/lib/libmine.so {binding} /lib/libjemalloc.so.2"})
    assert f"LD_PRELOAD=/lib/libmine.so:{LIBRARY} " in done.stdout
    done = run("--allocator", "glibc", "--show", "--", "true", env={"LD_PRELOAD": LIBRARY})
    assert done.stdout == "env -u LD_PRELOAD true\n"


def test_users_hardened_library_stays():
    hardened = beside("libnumalloc-hardened.so")
    found = maps_of(env={"LD_PRELOAD": hardened})
    assert "libnumalloc-hardened.so" in found and LIBRARY not in found
    done = run("--show", "--", "true", env={"LD_PRELOAD": "libnumalloc-hardened.so:/lib/libmine.so"})
    assert done.stdout == f"env LD_PRELOAD=/lib/libmine.so:{hardened} true\n"
    done = run("--allocator", LIBRARY, "--show", "--", "true", env={"LD_PRELOAD": hardened})
    assert LIBRARY in done.stdout, "who names a library means this one"
    done = run("--allocator", "glibc", "--show", "--", "true", env={"LD_PRELOAD": hardened})
    assert done.stdout == "env -u LD_PRELOAD true\n"
    done = run("--", "true", env={"LD_PRELOAD": "/nowhere/libnumalloc-hardened.so"})
    assert (done.returncode, done.stderr.count("numalloc: LD_PRELOAD: /nowhere/libnumalloc-hardened.so is not a file")) == (2, 1)


def test_binding_comes_before_the_other_allocator():
    maps = maps_of("--allocator", "glibc", "--threads", "dense")
    assert "libnumalloc-binding.so" in maps and LIBRARY not in maps
    assert "NUMALLOC_BINDING=saturate" in run("--allocator", "glibc", "--threads", "dense", "--", "env").stdout


def test_it_becomes_the_program(tmp_path):
    """The process that was started is the program, with its arguments, input, descriptors and folder."""
    with open(tmp_path / "more", "w") as more:
        script = 'echo $$ "$0" "$1"; cat; pwd; echo written >/proc/self/fd/$2; exit 7'
        process = subprocess.Popen(
            [*COMMAND, "sh", "-c", script, "a b", "--threads", str(more.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            pass_fds=[more.fileno()],
        )
        out, _ = process.communicate("from a pipe\n", timeout=LIMIT)
    assert out == f"{process.pid} a b --threads\nfrom a pipe\n{tmp_path}\n"
    assert process.returncode == 7
    assert (tmp_path / "more").read_text() == "written\n"


@pytest.mark.parametrize("stays", [[], ["--report"]])
def test_signals_environment_and_limits_are_as_without_the_tool(stays):
    """What a parent may leave behind in a program: ignored and blocked signals, variables, niceness."""
    environment = {"LC_ALL": "", "LANG": "C", "PATH": os.environ["PATH"], "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    for words in (
        ["grep", "-E", "^(SigBlk|SigIgn|NoNewPrivs)", "/proc/self/status"],  # not by a shell, which puts its mask right
        ["sh", "-c", "env | grep -Ev '^(LD_PRELOAD|_)=' | sort; ulimit -c; umask"],
    ):
        bare = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LIMIT)
        ours = subprocess.run([*COMMAND, *stays, "--", *words], env=environment, capture_output=True, text=True, timeout=LIMIT)
        assert ours.stdout == bare.stdout


@pytest.mark.parametrize("stays", [[], ["--report"]])
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGTERM, signal.SIGKILL])
def test_end_by_a_signal(stays, number):
    assert run(*stays, "--", "sh", "-c", f"kill -{number} $$").returncode == -number


def test_missing_library_is_named(tmp_path, monkeypatch):
    """The line that says so names only flags that there are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preload, "_folders", lambda: [tmp_path])
    with pytest.raises(Problem, match="neither built here nor installed") as told:
        our_library()
    flags = set(re.findall(r"--[a-z]+", str(told.value))) - {"--preset", "--build"}  # CMake's
    assert flags == {"--allocator"} and run("--allocator", LIBRARY, "--show", "--", "true").returncode == 0


def test_library_of_the_demonstration_is_found(tmp_path, monkeypatch):
    """scripts/demo.sh is a newcomer's first command, and builds there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preload, "_PACKAGE", tmp_path / "tools/src/numalloc_tools")
    (tmp_path / "build/demo").mkdir(parents=True)
    there = tmp_path / "build/demo/libnumalloc.so"
    there.write_bytes(Path(LIBRARY).read_bytes())
    assert our_library() == there
    monkeypatch.chdir("/")
    assert our_library() == there


def test_broken_pipe_ends_the_program():
    """Python ignores SIGPIPE; its programs must not."""
    process = subprocess.Popen([*COMMAND, "--", "yes"], stdout=subprocess.PIPE)
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(timeout=LIMIT) == -signal.SIGPIPE


@pytest.mark.parametrize("stays", [[], ["--report"], ["--instances", "1"]])
def test_programs_that_cannot_be_run(stays, tmp_path):
    (tmp_path / "data").write_text("no program")
    (tmp_path / "lost").write_text("#!/no/such/interpreter\n")
    (tmp_path / "lost").chmod(0o755)
    for program, status, said in [
        ("no-such-program", 127, "no-such-program: no such program"),
        (tmp_path / "nothing", 127, f"{tmp_path}/nothing: no such program"),
        (tmp_path / "data", 126, f"{tmp_path}/data: not executable"),
        (tmp_path, 126, "a folder, not a program"),
        (tmp_path / "lost", 127, "interpreter or loader is missing"),
    ]:
        done = run(*stays, "--", program)
        assert done.returncode == status
        assert said in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""


@pytest.mark.parametrize("stays", [[], ["--report"]])
def test_script_without_a_first_line_is_a_shells(stays, tmp_path):
    script = tmp_path / "script"
    script.write_text("echo shell $1\n")
    script.chmod(0o755)
    assert run(*stays, "--", script, "ran").stdout == "shell ran\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--allocator", "nomalloc"], "--allocator: 'nomalloc' is unknown; accepted: numalloc, glibc, "),
        (["--allocator", "/no/such.so"], "/no/such.so is not a file"),
        (["--allocator", "/etc/passwd"], "--allocator: /etc/passwd is not a library; accepted: a shared library"),
        (["--allocator", beside("libnumalloc-binding.so")], "accepted: --binding-only"),
        (["--threads", "thick"], "--threads: 'thick' is unknown; accepted: default, none, sparse, dense"),
        (["--memory", "everywhere"], "--memory: 'everywhere' is not understood; accepted: default, first-touch"),
        (["--memory", "preferred:77"], "this machine has no node 77; accepted: 0"),
        (["--allocator", "glibc", "--memory", "bind:0-77"], "this machine has no node"),
        (["--huge-pages", "often"], "--huge-pages: 'often' is unknown; accepted: default, on, off"),
        (["--autonuma", "on"], "--autonuma: 'on' is unknown; accepted: default, off"),
        (["--purge-delay", "soon"], "--purge-delay: 'soon' is not understood; accepted: milliseconds"),
        (["--binding", "tight"], "--binding: 'tight' is not understood; accepted: auto, interleave, saturate, file, none"),
        (["--binding", "file"], "accepted: together with --binding-file"),
        (["--binding-file", "/no/such/rules"], "/no/such/rules cannot be read"),
        (["--threads", "none", "--binding", "none"], "accepted: one of the two"),
        (["--huge-pages", "off", "--thp", "on"], "accepted: one of the two"),
        (["--allocator", "glibc", "--purge-delay", "0"], "this is an option of numalloc, but the program runs under glibc"),
        (["--binding-only", "--purge-delay", "0"], "this is an option of numalloc, but only its binding is used"),
        (["--instances", "some"], "--instances: 'some' is not understood; accepted: per-node, or a number"),
        (["--instances", "2", "--ranks"], "accepted: one of --ranks and --instances"),
        (["--ranks"], "SLURM_STEP_ID is set; accepted: under mpirun or srun"),
        (["--logs", "/tmp"], "accepted: with --instances"),
        (["--json", "x"], "accepted: with --show or --report"),
        (["--profile", "/no/such/profile"], "/no/such/profile cannot be read"),
        (["--save-profile", "/no/such/profile"], "/no/such/profile cannot be written"),
    ],
)
def test_errors_are_one_line_and_status_2(words, said):
    done = run(*words, "--", "echo", "started")
    assert said in done.stderr
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")


def test_no_program_is_one_line():
    done = run()
    assert done.stderr == "numalloc: no program is named; accepted: numalloc run [OPTIONS] -- PROGRAM [ARGS]...\n"
    assert (done.returncode, done.stdout) == (2, "")


def test_bad_variable_of_the_user_is_refused_before_the_library_sees_it():
    done = run("--", "echo", "started", env={"NUMALLOC_PURGE_DELAY": "soon"})
    assert done.stderr.startswith("numalloc: NUMALLOC_PURGE_DELAY: 'soon' is not understood")
    assert (done.returncode, done.stdout) == (2, "")


def test_every_option_of_the_library_is_a_flag(tmp_path):
    """With its default, and that reaches the program."""
    assert len(generated()) >= 12
    values = {one.name: one.default for one in generated()}
    flags = [word for one in generated() for word in (one.flag, values[one.name])]
    told = json.loads(run("--show", "--json", "-", *flags).stdout)[0]["environment"]
    for one in generated():
        assert told.pop(one.variable) == values[one.name]
    assert told == {"LD_PRELOAD": LIBRARY}
    text = " ".join(run("--help", env={"COLUMNS": "200"}).stdout.split())
    assert all(one.flag in text for one in generated())


def test_output_of_show_does_the_same_in_a_shell():
    shown = run("--threads", "none", "--purge-delay", "5", "--show", "--", "sh", "-c", "echo $NUMALLOC_BINDING").stdout
    done = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout == "none\n"
    assert shlex.split(shown)[0] == "env" and "NUMALLOC_PURGE_DELAY=5" in shlex.split(shown)


def test_huge_pages_of_the_whole_process_can_be_off():
    def enabled(*flags: str) -> str:
        return run(*flags, "--", "sh", "-c", "grep THP_enabled /proc/self/status").stdout.split()[1]

    assert enabled("--allocator", "glibc") == "1"
    assert enabled("--allocator", "glibc", "--huge-pages", "off") == "0"
    assert "prctl(PR_SET_THP_DISABLE, 1)" in run("--huge-pages", "off", "--show", "--", "true").stdout


@pytest.mark.full("the kernel gives huge pages where it has some")
@pytest.mark.parametrize("name", ["numalloc", "glibc", "jemalloc", "mimalloc"])
def test_huge_pages_by_the_allocators_own_switch(name):
    """What the kernel then says of a program that fills its heap."""
    mode = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    if "[madvise]" not in mode:
        pytest.skip("only where the system leaves huge pages to programs does a switch change something")
    if run("--allocator", name, "--show", "--", "true").returncode:
        pytest.skip(f"{name} is not installed")
    look = "open('/proc/self/smaps_rollup').read().split('AnonHugePages:')[1].split()[0]"
    fill = f"x = [bytes(300) for _ in range(200000)]; print({look})"

    def huge(*flags: str) -> int:
        return int(run(*flags, "--", sys.executable, "-c", fill, env={"PYTHONMALLOC": "malloc"}).stdout)

    assert huge("--allocator", name, "--huge-pages", "on") > 20_000
    assert huge("--allocator", name, "--huge-pages", "off") == 0


def test_switches_join_what_the_user_has_set():
    flags = ["--allocator", "glibc", "--huge-pages", "on", "--show"]
    done = run(*flags, "--", "true", env={"GLIBC_TUNABLES": "glibc.malloc.check=3"})
    assert "GLIBC_TUNABLES=glibc.malloc.check=3:glibc.malloc.hugetlb=1" in done.stdout


def test_static_program_runs_and_is_reported():
    done = run("--", "busybox", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert done.stderr == f"numalloc: busybox is linked statically: it runs without {NAME}\n"
    # Its children may be linked otherwise.
    assert "libnumalloc" in run("--", "busybox", "sh", "-c", "exec /bin/cat /proc/self/maps").stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a program of another user")
def test_setuid_program_runs_and_is_reported(tmp_path):
    program = tmp_path / "true"
    program.write_bytes(Path("/bin/cat").read_bytes())
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    tmp_path.chmod(0o755)
    done = run("--", program, "/proc/self/maps")
    if "libnumalloc" in done.stdout:
        pytest.skip("this file system is mounted nosuid")
    assert done.returncode == 0
    said = f"numalloc: true changes its user (setuid), so the loader preloads nothing: it runs without {NAME}\n"
    assert done.stderr == said


def test_profile_is_saved_used_and_overridden(tmp_path):
    profile = tmp_path / "profile.toml"
    flags = ["--threads", "dense", "--memory", "interleave", "--huge-pages", "off", "--purge-delay", "10ms", "--reserve", "1G"]
    done = run(*flags, "--save-profile", profile)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert run("--profile", profile, "--show").stdout == run(*flags, "--show").stdout
    changed = run("--profile", profile, "--threads", "none", "--reserve", "0", "--show").stdout
    assert "NUMALLOC_BINDING=none" in changed and "NUMALLOC_RESERVE=0" in changed and "NUMALLOC_PURGE_DELAY=10ms" in changed
    assert run("--profile", profile, "--", "sh", "-c", "echo $NUMALLOC_BINDING").stdout == "saturate\n"


def test_a_saved_profile_is_of_use_in_another_folder(tmp_path):
    (tmp_path / "rules").write_text("0 0\n")
    flags = ["--binding", "file", "--binding-file", "rules"]
    done = run(*flags, "--save-profile", "profile.toml", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"NUMALLOC_BINDING_FILE={tmp_path}/rules" in run("--profile", tmp_path / "profile.toml", "--show", cwd="/").stdout


def test_reports_have_stacks_in_programs_without_an_unwinder():
    for flags in (["--guarded", "1/100"], ["--backtrace", "1"]):
        assert "libgcc_s.so.1" in run(*flags, "--", "sh", "-c", "echo $LD_PRELOAD").stdout, flags
    assert "libgcc_s.so.1" not in run("--", "sh", "-c", "echo $LD_PRELOAD").stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("threads = ", "is not TOML"),
        ("thread = 'dense'", "'thread' is unknown; accepted: allocator, threads, "),
        ("threads = 'thick'", "--threads: 'thick' is unknown"),
        ("binding-only = 'yes'", "accepted: true, false"),
        ("options = 3", "options is not a table"),
        ("[options]\npurge_dela = 0", "numalloc has no option 'purge_dela'; accepted: binding, "),
        ("[options]\npurge_delay = 0.5", "purge_delay: 0.5 is not understood"),
        ("[options]\nmemory = 'local'", "memory: this option has a flag of its own; accepted: --memory"),
    ],
)
def test_bad_profiles_are_named(text, said, tmp_path):
    profile = tmp_path / "profile.toml"
    profile.write_text(text)
    done = run("--profile", profile, "--", "true")
    assert said in done.stderr and str(profile) in done.stderr
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_flags_of_a_setting_give_that_setting():
    """What tune prints is what it has tried."""
    setting = Setting("glibc", "dense", "local", "off", "off", True, (("binding_file", "none"),))
    assert run(*setting.flags(), "--show", "--json", "-").returncode == 0
    assert Setting().flags() == []
    assert Setting(options=(("purge_delay", "0"),)).flags() == ["--purge-delay", "0"]


@pytest.mark.full("asserts resident memory and processor time")
def test_report_agrees_with_the_kernel(tmp_path):
    """A program that holds 60 MiB, in a child of a child, for a while."""
    hold = "x = bytearray(60 << 20); import time; time.sleep(0.7)"
    done = run("--report", "--json", tmp_path / "report", "--", "sh", "-c", f"{sys.executable} -c '{hold}'; exit 3")
    assert done.returncode == 3 and done.stdout == ""
    assert "CPU time" in done.stderr and "status 3" in done.stderr
    told = json.loads((tmp_path / "report").read_text())[0]
    assert told["status"] == 3 and told["signal"] is None and told["looks"] >= 3
    assert 60 << 20 < sum(one["peak_bytes"] for one in told["nodes"]) < 100 << 20
    assert 0 < sum(one["cpu_seconds"] for one in told["nodes"]) < 5
