"""inject.py LIBRARY PROGRAM SYSTEM_CALL...: makes each system call fail with ENOMEM, the first time,
the second time, and so on, alone (when=N) and from then on (when=N+), until the program no longer
makes that many. Each time the program must end well (0), or having met NULL with ENOMEM (3), with
nothing on stderr. Only before main may it fail otherwise, where the dynamic loader itself was
refused memory; those places are known from the same run without the library."""

import os
import re
import subprocess
import sys
import tempfile

library, program, calls = sys.argv[1], sys.argv[2], sys.argv[3:]
STEPS = int(os.environ.get("NUMALLOC_TEST_INJECTIONS", "100000"))


def run(call, when, log, library=library):
    command = [
        "strace",
        "-f",
        "-qq",
        "-o",
        log,
        "-e",
        f"trace={call}",
        "-e",
        "signal=none",
        "-e",
        f"inject={call}:error=ENOMEM:when={when}",
    ]
    if library != "none":
        command += ["-E", f"LD_PRELOAD={library}"]
    else:
        command += ["-E", "NUMALLOC_TEST_ANY=1"]
    return subprocess.run(command + [program], capture_output=True, text=True, timeout=300)


def was_loader(result, call, step, suffix, log):
    """The loader names itself when it is refused memory, but for its very first mapping, which
    crashes it: the first failure is therefore compared with that of the bare program."""
    if result.returncode == 127 and re.search(r"error while loading shared libraries|cannot", result.stderr):
        return True
    if "cannot be preloaded" in result.stderr:  # the loader goes on without the library
        return True
    return step == 1 and result.returncode == -11 and run(call, f"{step}{suffix}", log, "none").returncode == -11


def control():
    """Without a failure everything must work, under strace too, with the library in place."""
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=none"]
    if library != "none":
        command += ["-E", f"LD_PRELOAD={library}"]
    result = subprocess.run(command + [program, "strict"], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0 and result.stdout == "done\n", result


control()
failures = []
total = 0
with tempfile.TemporaryDirectory() as folder:
    log = os.path.join(folder, "log")
    for call in calls:
        injected_runs = refused = loader = 0
        for suffix in ("", "+"):
            step = 0
            while step < STEPS:
                step += 1
                result = run(call, f"{step}{suffix}", log)
                if "(INJECTED)" not in open(log).read():
                    break
                injected_runs += 1
                if was_loader(result, call, step, suffix, log):
                    loader += 1
                elif result.returncode in (0, 3) and "done" in result.stdout and result.stderr == "":
                    refused += result.returncode == 3
                else:
                    failures.append(
                        f"{call} when={step}{suffix}: status {result.returncode}, stdout {result.stdout!r}, stderr {result.stderr[:300]!r}"
                    )
        total += injected_runs
        print(f"{call}: {injected_runs} runs with a failure, {refused} met NULL, {loader} ended in the loader")
if total == 0:
    failures.append("no call was made to fail")
for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
