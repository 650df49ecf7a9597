"""`numalloc doctor -- PROGRAM` and `numalloc doctor PID`: real programs of every kind that the library can or cannot be
in, built here, and processes that run."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from doctor_command import ALLOWED, LIBRARIES, LIBRARY, NOBODY, OWN, ROOT, USUAL, WAITS, build, doctor, of_program
from limits import LIMIT, wait_until

# Programs


def test_usual_program_is_served(tmp_path):
    found = of_program(build(tmp_path, USUAL))
    assert found["library"]["severity"] == "ok" and "serves" in found["library"]["what"]


def test_nothing_of_the_program_runs(tmp_path):
    trace = tmp_path / "trace"
    source = (
        f'#include <stdio.h>\n__attribute__((constructor)) static void now(void) {{ fclose(fopen("{trace}", "w")); }}\nint'
        " main(void) { return 0; }\n"
    )
    program = build(tmp_path, source)
    assert of_program(program)["library"]["severity"] == "ok"
    assert not trace.exists()
    subprocess.run([program], check=True, timeout=LIMIT)
    assert trace.exists()


def test_neither_its_own_loader_nor_its_auditor_runs(tmp_path):
    """Both would, by asking the loader: a program from anywhere is judged before anybody trusts it."""
    trace = tmp_path / "trace"
    leaves = f'#include <fcntl.h>\n#define RUN open("{trace}", O_CREAT | O_WRONLY, 0600)\n'
    own = build(tmp_path, leaves + "int main(void) { return RUN < 0; }\n", "-static", name="ld-linux-x86-64.so.2")
    found = of_program(build(tmp_path, USUAL, f"-Wl,--dynamic-linker={own}", name="brings"))
    assert found["loader"]["severity"] == "warning" and f"a loader of its own, {own}" in found["loader"]["what"]
    source = leaves + "unsigned la_version(unsigned version) { RUN; return version; }\n"
    auditor = build(tmp_path, source, "-shared", "-fPIC", name="auditor.so")
    found = of_program(build(tmp_path, USUAL, f"-Wl,--audit={auditor}", name="audited"))
    assert found["loader"]["severity"] == "warning" and str(auditor) in found["loader"]["what"]
    assert not trace.exists()


def test_stub_of_a_program_at_a_fixed_address_is_no_malloc(tmp_path):
    source = "#include <stdlib.h>\nvoid use(void (*)(void*));\nint main(void) { use(free); free(malloc(1)); return 0; }\n"
    build(
        tmp_path,
        "#include <stdlib.h>\nvoid (*kept)(void*) = free;\nvoid use(void (*f)(void*)) { kept = f; }\n",
        "-shared",
        "-fPIC",
        name="libuse.so",
    )
    found = of_program(build(tmp_path, source, "-no-pie", "-fno-pie", f"-L{tmp_path}", "-luse", f"-Wl,-rpath,{tmp_path}"))
    assert "own-malloc" not in found and found["library"]["severity"] == "ok"


def test_program_behind_a_link_finds_its_libraries(tmp_path):
    """As the loader does, by where the program really is."""
    (tmp_path / "real").mkdir()
    build(tmp_path / "real", "void here(void) {}\n", "-shared", "-fPIC", name="libhere.so")
    real = tmp_path / "real"
    program = build(real, "void here(void);\nint main(void) { here(); return 0; }\n", f"-L{real}", "-lhere", "-Wl,-rpath,$ORIGIN")
    link = tmp_path / "link"
    link.symlink_to(program)
    assert of_program(link)["library"]["severity"] == "ok"


@pytest.mark.parametrize(("flags", "words"), [(["-static"], "is static:"), (["-static-pie"], "is static-pie:")])
def test_static_program_is_out_of_reach(tmp_path, flags, words):
    found = of_program(build(tmp_path, USUAL, *flags))["static"]
    assert found["severity"] == "bad" and words in found["what"]


@pytest.mark.parametrize("flags", [["-static"], []])
def test_program_with_the_library_in_it_is_served(tmp_path, flags):
    archive = LIBRARY.with_suffix(".a")
    if not archive.is_file():
        pytest.skip(f"{archive} is not built")
    program = build(tmp_path, WAITS, *flags, str(archive), "-pthread")
    assert of_program(program)["library"]["severity"] == "ok"
    with running(program) as process:
        found = doctor(process.pid)["library"]
    assert found["severity"] == "ok" and "is linked with libnumalloc.a" in found["what"]


def test_program_with_its_own_malloc_is_not_served(tmp_path):
    found = of_program(build(tmp_path, OWN + USUAL.partition("\n")[2]))["own-malloc"]
    assert found["severity"] == "bad" and "malloc of its own" in found["what"]


def test_program_that_hides_its_own_malloc_is_not_served(tmp_path):
    """As one that was linked with a static jemalloc and exports nothing of it."""
    found = of_program(build(tmp_path, OWN + USUAL.partition("\n")[2], "-fvisibility=hidden"))["own-malloc"]
    assert found["severity"] == "bad" and "do not go through the loader" in found["why"]


def test_library_with_its_own_malloc_is_named(tmp_path):
    """Linked with -Bsymbolic it keeps to its own; without, ours comes first."""
    for flag, severity in (("-Wl,-Bsymbolic", "warning"), ("-O2", None)):
        folder = tmp_path / flag.strip("-").replace(",", "")
        folder.mkdir()
        source = OWN + "void* volatile keep; void use(void) { keep = malloc(5); free(keep); }\n"
        build(folder, source, "-shared", "-fPIC", "-fno-builtin", flag, name="libown.so")
        program = build(
            folder,
            "#include <stdlib.h>\nvoid use(void);\nint main(void) { use(); free(malloc(1)); return 0; }\n",
            f"-L{folder}",
            "-lown",
            f"-Wl,-rpath,{folder}",
            "-fno-builtin",
        )
        found = of_program(program)
        assert found.get("own-malloc", {}).get("severity") == severity
        if severity:
            assert "libown.so" in found["own-malloc"]["what"]
        else:
            assert found["library"]["severity"] == "ok"


@pytest.mark.skipif(not (LIBRARIES / "libjemalloc.so.2").exists(), reason="no jemalloc here")
def test_other_preloaded_malloc_is_named(tmp_path):
    program = build(tmp_path, USUAL)
    other = str(LIBRARIES / "libjemalloc.so.2")
    found = of_program(program, LD_PRELOAD=f"{other}:{LIBRARY}")["own-malloc"]
    assert found["severity"] == "bad" and "libjemalloc.so.2" in found["what"]
    assert of_program(program, LD_PRELOAD=f"{LIBRARY}:{other}")["library"]["severity"] == "ok"
    assert of_program(program, LD_PRELOAD=other)["library"]["severity"] == "ok", "ours comes before what is there already"


@pytest.mark.parametrize(("flag", "name"), [("address", "AddressSanitizer"), ("thread", "ThreadSanitizer"), ("leak", "LeakSanitizer")])
def test_sanitizers_are_left_alone(tmp_path, flag, name):
    found = of_program(build(tmp_path, USUAL, f"-fsanitize={flag}"))["sanitizer"]
    assert found["severity"] == "bad" and name in found["what"]
    assert ("gcc's AddressSanitizer" in found["why"]) == (flag == "address")


def test_static_sanitizer_is_left_alone(tmp_path):
    found = of_program(build(tmp_path, USUAL, "-fsanitize=address", "-static-libasan"))
    assert found["sanitizer"]["severity"] == "bad" and "own-malloc" not in found


def test_program_of_32_bits_is_out_of_reach(tmp_path):
    found = of_program(build(tmp_path, "int main(void) { return 0; }\n", "-m32", "-nostdlib", "-Wl,-e,main"))["architecture"]
    assert found["severity"] == "bad" and "32 bit" in found["what"]


def test_program_for_musl_is_out_of_reach(tmp_path):
    assert of_program(build(tmp_path, USUAL, compiler="musl-gcc"))["musl"]["severity"] == "bad"


@pytest.mark.full("builds with Go, whose cache may be empty")
def test_go_program_is_out_of_reach(tmp_path):
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if not go:
        pytest.skip("no go here")
    (tmp_path / "main.go").write_text("package main\nfunc main() {}\n")
    environment = os.environ | {"CGO_ENABLED": "0", "GOCACHE": str(tmp_path / "cache"), "HOME": str(tmp_path), "GOFLAGS": "-p=1"}
    subprocess.run(
        [go, "build", "-o", str(tmp_path / "program"), "main.go"],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        timeout=LIMIT,
    )
    found = of_program(tmp_path / "program")["static"]
    assert found["severity"] == "bad" and "Go" in found["what"]


@contextmanager
def folder_for_all():
    """Where other users come to, other than pytest's own folders."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="numalloc-doctor-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


SECURE = "#include <stdio.h>\n#include <sys/auxv.h>\nint main(void) { return getauxval(AT_SECURE) ? 3 : 4; }\n"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
@pytest.mark.parametrize(
    ("owner", "bits", "severity"),
    [("nobody", 0o4000, "bad"), ("nobody", 0o2000, "bad"), ("root", 0o4000, "note"), ("root", 0o2000, "note")],
)
def test_program_with_raised_rights_is_out_of_reach(owner, bits, severity):
    """Rights are raised for who is not the owner; the kernel itself says so, too."""
    with folder_for_all() as folder:
        program = build(folder, SECURE)
        shutil.chown(program, owner, pwd.getpwnam(owner).pw_gid)
        program.chmod(0o755 | bits)
        assert of_program(program)["secure-execution"]["severity"] == severity
        assert subprocess.run([program], timeout=LIMIT).returncode == (3 if severity == "bad" else 4)
        if severity == "note":
            assert subprocess.run([program], user="nobody", group=NOBODY.pw_gid, extra_groups=[], timeout=LIMIT).returncode == 3


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
@pytest.mark.parametrize("raised", [True, False])
def test_capabilities_of_a_file_count_for_others_than_root(raised):
    with folder_for_all() as folder:
        program = build(folder, SECURE)
        if raised:
            if not shutil.which("setcap") or subprocess.run(["setcap", "cap_net_raw+ep", program], timeout=LIMIT).returncode:
                pytest.skip("no setcap here")
            assert of_program(program)["secure-execution"]["severity"] == "note"
        found = as_nobody(folder, "doctor", "--json", "--", str(program))
        assert found.get("secure-execution", {}).get("severity") == ("bad" if raised else None)
        assert subprocess.run([program], user="nobody", group=NOBODY.pw_gid, extra_groups=[], timeout=LIMIT).returncode == (
            3 if raised else 4
        )


def as_nobody(folder: Path, *words: str) -> dict[str, dict]:
    """The tools and the library copied to where others may read them, on Debian's Python."""
    site = Path(sysconfig.get_path("purelib"))
    for package in (
        ROOT / "tools/src/numalloc_tools",
        *(site / name for name in ("elftools", "typer", "click", "rich", "shellingham")),
    ):
        if package.is_dir():
            shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (
        "pygments",
        "markdown_it",
        "mdurl",
        "annotated_doc",
        "pydantic",
        "pydantic_core",
        "typing_inspection",
        "annotated_types",
    ):
        shutil.copytree(site / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(site / "typing_extensions.py", folder)
    shutil.copy(LIBRARY, folder / "libnumalloc.so")
    code = "from numalloc_tools.cli import main; main()"
    position = words.index("--")
    command = [
        "/usr/bin/python3",
        "-B",
        "-c",
        code,
        *words[:position],
        "--library",
        str(folder / "libnumalloc.so"),
        *words[position:],
    ]
    done = subprocess.run(
        command,
        cwd="/",
        user="nobody",
        group=NOBODY.pw_gid,
        extra_groups=[],
        env={"PYTHONPATH": str(folder), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    if "No module named" in done.stderr or not done.stdout:
        pytest.skip(f"the tools do not work for others here: {done.stderr.strip().splitlines()[-1:]}")
    return {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}


def test_script_is_followed_to_its_interpreter(tmp_path):
    script = tmp_path / "script"
    script.write_text(f"#!/usr/bin/env {sys.executable}\nprint()\n")
    script.chmod(0o755)
    found = of_program(script)
    assert "python" in found["script"]["what"] and "PYTHONMALLOC=malloc PROGRAM" in found["own-pools"]["mend"]
    script.write_text("#!/bin/sh\nunset LD_PRELOAD\nexec ls\n")
    assert "unset LD_PRELOAD" in of_program(script)["preload-stripped"]["what"]
    script.write_text("#!/bin/sh\n# unset LD_PRELOAD would hurt\nexec ls\n")
    assert "preload-stripped" not in of_program(script)


def test_missing_library_of_the_program_is_named(tmp_path):
    build(tmp_path, "void gone(void) {}\n", "-shared", "-fPIC", name="libgone.so")
    program = build(tmp_path, "void gone(void);\nint main(void) { gone(); }\n", f"-L{tmp_path}", "-lgone")
    assert "libgone.so" in of_program(program)["missing-library"]["what"]


# Processes


@contextmanager
def running(program: Path, **environment: str):
    process = subprocess.Popen([program], env=os.environ | environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "up\n"
        yield process
    finally:
        process.kill()
        process.wait(timeout=LIMIT)
        process.stdout.close()


def test_process_with_the_library_is_known(tmp_path):
    with running(build(tmp_path, WAITS), LD_PRELOAD=str(LIBRARY)) as process:
        found = doctor(process.pid)
    assert found["library"]["severity"] == "ok" and str(LIBRARY) in found["library"]["what"]


def test_process_with_the_hardened_library_is_known(tmp_path):
    hardened = LIBRARY.with_name("libnumalloc-hardened.so")
    if not hardened.is_file():
        pytest.skip(f"{hardened} is not built")
    with running(build(tmp_path, WAITS), LD_PRELOAD=str(hardened)) as process:
        assert doctor(process.pid)["library"]["severity"] == "ok"


def test_process_without_the_library_is_known(tmp_path):
    with running(build(tmp_path, WAITS)) as process:
        found = doctor(process.pid)["library"]
    assert found["severity"] == "bad" and "LD_PRELOAD did not name it" in found["why"]


def test_process_that_lost_its_preload_is_known(tmp_path):
    with running(build(tmp_path, WAITS), LD_PRELOAD="/nowhere/libnumalloc.so") as process:
        assert "does not exist" in doctor(process.pid)["library"]["why"]


def test_process_under_a_sanitizer_is_known(tmp_path):
    """Its calls do lead to the library, which hands them on."""
    with running(build(tmp_path, WAITS, "-fsanitize=leak"), LD_PRELOAD=str(LIBRARY)) as process:
        found = doctor(process.pid)["sanitizer"]
    assert found["severity"] == "bad" and "stepped aside" in found["what"]


def test_process_with_a_stub_at_a_fixed_address_is_served(tmp_path):
    build(tmp_path, "#include <stdlib.h>\nvoid (*kept)(void*) = free;\n", "-shared", "-fPIC", name="libkeep.so")
    source = WAITS.replace("int main(void) {", "extern void (*kept)(void*);\nint main(void) { kept = free;")
    program = build(tmp_path, source, "-no-pie", "-fno-pie", f"-L{tmp_path}", "-lkeep", f"-Wl,-rpath,{tmp_path}")
    with running(program, LD_PRELOAD=str(LIBRARY)) as process:
        assert doctor(process.pid)["library"]["severity"] == "ok"


def test_process_of_32_bits_is_known(tmp_path):
    source = 'void _start(void) { for (;;) __asm__ volatile("int $0x80" : : "a"(29)); }\n'  # pause
    program = build(tmp_path, source, "-m32", "-nostdlib", "-static", "-ffreestanding")
    process = subprocess.Popen([program])
    try:
        found = doctor(process.pid)["library"]
    finally:
        process.kill()
        process.wait(timeout=LIMIT)
    assert found["severity"] == "bad" and "of 32 bits" in found["why"]


def test_static_process_is_known(tmp_path):
    with running(build(tmp_path, WAITS, "-static"), LD_PRELOAD=str(LIBRARY)) as process:
        assert "static" in doctor(process.pid)["library"]["why"]


def test_process_on_its_own_malloc_is_known(tmp_path):
    with running(build(tmp_path, OWN + WAITS.replace("#include <stdlib.h>\n", ""), "-fno-builtin"), LD_PRELOAD=str(LIBRARY)) as process:
        found = doctor(process.pid)["own-malloc"]
    assert found["severity"] == "bad" and str(tmp_path) in found["what"]


@pytest.mark.skipif(not (LIBRARIES / "libjemalloc.so.2").exists(), reason="no jemalloc here")
def test_process_under_another_malloc_is_known(tmp_path):
    with running(build(tmp_path, WAITS, "-Wl,-z,now"), LD_PRELOAD=f"{LIBRARIES}/libjemalloc.so.2:{LIBRARY}") as process:
        found = doctor(process.pid)["own-malloc"]
    assert found["severity"] == "bad" and "libjemalloc.so.2" in found["what"]


def test_more_runnable_threads_than_cpus_are_reported(tmp_path):
    source = (
        "#include <pthread.h>\n#include <stdio.h>\nstatic void* spin(void* p) { for (volatile int i = 0;; ++i) ; return p; }\nint"
        ' main(void) { pthread_t t; for (int i = 0; i < 3; ++i) pthread_create(&t, 0, spin, 0); puts("up"); fflush(stdout);'
        " pthread_join(t, 0); }\n"
    )
    program = build(tmp_path, source, "-pthread")
    launcher = tmp_path / "bound"
    launcher.write_text(f"#!/bin/sh\nexec taskset -c {ALLOWED} {program}\n")
    launcher.chmod(0o755)
    with running(launcher) as process:
        wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING)  # which is no thread that wants a CPU
        found = doctor(process.pid)
    assert found["cpuset"]["what"] == f"3 threads for 1 CPU ({ALLOWED})"
