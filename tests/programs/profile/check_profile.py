"""check_profile.py WHAT LIBRARY PROGRAM: the heap profile of a program whose allocations are known."""

import glob
import math
import os
import platform
import re
import select
import signal
import subprocess
import sys
import tempfile

from pprof_file import Profile

what, library, program = sys.argv[1:]
program = os.path.realpath(program)
COUNT = 4000
BIG = 50
#            objects, bytes of each
LEAKED = {
    "leak_by_malloc": (COUNT, 1000),
    "leak_by_calloc": (COUNT, 500),
    "leak_by_new": (COUNT, 200),
    "leak_by_memalign": (COUNT, 300),
    "leak_by_realloc": (COUNT, 3000),
    "leak_big": (BIG, 1 << 20),
}
failures = []


def expect(right, text):
    if not right:
        failures.append(text)


def profiles_of(arguments, folder, sample, end=None, pattern="%p.pb"):
    """{number of the process: its profile}, and the first process's number."""
    environment = os.environ | {
        "LD_PRELOAD": f"{library}:libgcc_s.so.1",
        "NUMALLOC_PROFILE": str(sample),
        "NUMALLOC_PROFILE_SIGNALS": "1" if end else "0",
        "NUMALLOC_PROFILE_FILE": f"{folder}/{pattern}",
    }
    process = subprocess.Popen([program, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if end:
        expect(process.stdout.readline() == "ready\n", "the program did not get ready")
        process.send_signal(end)
    out, err = process.communicate(timeout=300)
    expect(process.returncode == (-end if end else 0), f"{arguments}: status {process.returncode}: {err}")
    expect(err == "", f"{arguments}: stderr: {err}")
    expect(out == ("" if end or arguments == ["abort"] else "done\n"), f"{arguments}: stdout {out!r}")
    found = {}
    for path in glob.glob(f"{folder}/*.pb"):
        found[os.path.basename(path)[:-3]] = Profile(path)
        os.remove(path)
    return found, str(process.pid)


def system_calls(process):
    """The number of the system call that each thread is in; "running"."""
    return [open(path).read().split()[0] for path in glob.glob(f"/proc/{process}/task/*/syscall")]


def near(seen, objects, size, sample, text):
    """Within eight deviations of what is right, which a right library misses once in 10^14; `sample` 1 is exact."""
    if sample == 1:
        return expect(seen == objects * size, f"{text}: {seen} bytes instead of {objects} x {size}")
    chance = 1 - math.exp(-size / sample)
    bound = 8 * size * math.sqrt(objects * (1 - chance) / chance)
    expect(abs(seen - objects * size) <= bound, f"{text}: {seen} bytes instead of {objects} x {size} within {bound:.0f}")


def check_leak(profile, sample, text):
    expect(profile.period == sample, f"{text}: period {profile.period}")
    expect("numalloc: lost records 0" in profile.comments, f"{text}: {profile.comments}")
    amounts = profile.amounts_by_function(program)
    for function, (objects, size) in LEAKED.items():
        near(amounts[function]["inuse_space"], objects, size, sample, f"{text}: {function} in use")
    near(amounts["free_it"]["alloc_space"], COUNT, 700, sample, f"{text}: free_it allocated")
    expect(amounts["free_it"]["inuse_space"] == 0, f"{text}: free_it has {amounts['free_it']['inuse_space']} bytes in use")
    for sample in profile.samples:
        expect(sample["labels"].get("remote_pages") in ("no", "yes", "unknown"), f"{text}: labels {sample['labels']}")


with tempfile.TemporaryDirectory() as folder:
    if what == "leak":
        for sample in (1, 4096, 65536):
            found, pid = profiles_of(["leak"], folder, sample)
            expect(list(found) == [pid], f"files {list(found)}")
            check_leak(found[pid], sample, f"leak at {sample}")
    elif what == "threads":
        found, pid = profiles_of(["threads"], folder, 4096)
        amounts = found[pid].amounts_by_function(program)
        near(amounts["leak_by_malloc"]["inuse_space"], 8 * COUNT, 1000, 4096, "leaked by threads")
        near(amounts["free_it"]["alloc_space"], 8 * COUNT, 700, 4096, "allocated by threads")
        expect(amounts["free_it"]["inuse_space"] == 0, "what threads freed is in use")
    elif what == "grow":
        for sample in (1, 65536):
            found, pid = profiles_of(["grow"], folder, sample)
            amounts = found[pid].amounts_by_function(program)
            own = [amounts[name] for name in amounts if "grow" in name]
            expect(own and sum(one["alloc_space"] for one in own) > 40 * (8 << 20), f"grown: {own}")
            expect(all(one["inuse_space"] == 0 for one in own), f"what was grown and freed is in use: {own}")
    elif what == "fork":
        found, pid = profiles_of(["fork"], folder, 1)
        expect(len(found) == 2 and pid in found, f"two files expected: {list(found)}")
        parent = found.pop(pid).amounts_by_function(program)
        child = found.popitem()[1].amounts_by_function(program)
        for text, one, leaks in (
            ("parent", parent, {"leak_by_malloc": 1000, "leak_by_calloc": 500}),
            ("child", child, {"leak_by_new": 200}),
        ):
            for function, size in (("leak_by_malloc", 1000), ("leak_by_calloc", 500), ("leak_by_new", 200)):
                near(one[function]["inuse_space"], COUNT if function in leaks else 0, size, 1, f"{text}: {function}")
        near(child["leak_by_malloc"]["alloc_space"], COUNT, 1000, 1, "child: what the parent had allocated")
        # Without %p the parent's file is not the child's.
        found, pid = profiles_of(["fork"], folder, 1, pattern="one.pb")
        near(found["one"].amounts_by_function(program)["leak_by_calloc"]["inuse_space"], COUNT, 500, 1, "one file: the parent's")
    elif what == "coroutines":
        found, pid = profiles_of(["coroutines"], folder, 1)
        near(found[pid].amounts_by_function(program)["leak_by_malloc"]["inuse_space"], 2, 1000, 1, "coroutines")
    elif what == "once":
        # The file is a pipe, and is written once somebody reads it: a thread waits for that, made by a signal.
        pipe = f"{folder}/profile"
        os.mkfifo(pipe)
        environment = os.environ | {
            "LD_PRELOAD": f"{library}:libgcc_s.so.1",
            "NUMALLOC_PROFILE": "4096",
            "NUMALLOC_PROFILE_SIGNALS": "1",
            "NUMALLOC_PROFILE_FILE": pipe,
        }
        openat, futex = {"x86_64": ("257", "202"), "aarch64": ("56", "98")}[platform.machine()]
        for then in ("signals", "exit"):
            process = subprocess.Popen(
                [program, *(["wait", "7"] if then == "signals" else ["leave"])],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            expect(process.stdout.readline() == "ready\n", "the program did not get ready")
            for _ in range(8 if then == "signals" else 1):
                process.send_signal(signal.SIGTERM)
                while not re.search("ShdPnd:\t0+\n", open(f"/proc/{process.pid}/status").read()):
                    pass
            # That thread is in open(). The others are back where they were.
            while "running" in (calls := system_calls(process.pid)) or openat not in calls:
                pass
            expect(calls.count(openat) == 1, f"{calls.count(openat)} threads write the profile: system calls {calls}")
            if then == "exit":
                process.stdin.write("\n")
                process.stdin.flush()
                while process.poll() is None and futex not in system_calls(process.pid):
                    pass
                expect(process.returncode is None, f"the exit did not wait: status {process.returncode}")
                if process.returncode is not None:
                    break
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            os.set_blocking(reader, True)
            with open(reader, "rb") as stream, open(f"{folder}/copy", "wb") as copy:
                expect(select.select([stream], [], [], 100)[0], "nothing is written")
                copy.write(stream.read())
            expect(process.wait(timeout=300) == -signal.SIGTERM, f"{then}: status {process.returncode}")
            check_leak(Profile(f"{folder}/copy"), 4096, then)
    elif what == "signals":
        for end in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            found, pid = profiles_of(["wait"], folder, 4096, end)
            expect(pid in found, f"{end.name}: files {list(found)}")
            check_leak(found[pid], 4096, end.name)
        found, pid = profiles_of(["vfork"], folder, 4096, signal.SIGTERM)
        expect(pid in found, f"after a child of vfork: files {list(found)}")
        found, pid = profiles_of(["abort"], folder, 4096)
        expect(not found, f"after _exit there are files: {list(found)}")
    else:
        sys.exit(f"what is {what}?")

for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
