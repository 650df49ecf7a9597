"""misuse.py COMMAND...: every case of the misuse program must end it by SIGABRT with exactly one
line on stderr that names the call, the address and what is wrong."""

import os
import re
import signal
import subprocess
import sys

command = sys.argv[1:]
names = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.split()
assert len(names) > 25, names
# What must be said of each, beside call and address.
MEANINGS = {
    "double": "twice|double|already|freed",
    "delete_twice": "twice|double|already|freed",
    "realloc_freed": "free|already|no block|not",
}
# What must not come back from the wrong call.
AT_ONCE = ("double", "damage", "free_")
# After which a program may go on, by siglongjmp() in a handler of SIGABRT.
RECOVERED = (
    "free_stack",
    "free_inside_64",
    "free_inside_big",
    "double_64",
    "double_later_64",
    "double_200000",
    "double_big",
    "realloc_stack",
    "delete_twice",
)
failures = []
for name in names:
    run = subprocess.run(command + [name], capture_output=True, text=True, timeout=300)
    announced = run.stdout.splitlines()[0] if run.stdout else ""
    call, _, address = announced.rpartition(" ")
    lines = run.stderr.splitlines()
    problem = None
    if "survived" in run.stdout:
        problem = "not noticed"
    elif "went on" in run.stdout and name.startswith(AT_ONCE):
        problem = "noticed late"
    elif run.returncode != -signal.SIGABRT:
        problem = f"status {run.returncode} instead of SIGABRT"
    elif len(lines) != 1:
        problem = f"{len(lines)} lines"
    elif address.lower() not in lines[0].lower():
        problem = f"address {address} not named"
    elif not re.search(r"(?<![\w])" + re.escape(call) + r"(?![\w\[])", lines[0]):
        problem = f"call {call} not named"
    else:
        meaning = next((words for start, words in MEANINGS.items() if name.startswith(start)), None)
        if meaning and not re.search(meaning, lines[0]):
            problem = f"does not say what is wrong ({meaning})"
        elif len(lines[0].split()) < 5:
            problem = "does not say what is wrong"
    print(f"{'FAIL' if problem else 'ok  '} {name}: {problem or ''} {lines[:3]}")
    if problem:
        failures.append(name)
for options in ({}, {"NUMALLOC_GUARDED": "1"}):
    for name in RECOVERED:
        try:
            run = subprocess.run([*command, name, "recover"], capture_output=True, text=True, timeout=40, env=os.environ | options)
            ended = f"status {run.returncode}, {run.stdout[-100:]!r}"
            good = run.returncode == 0 and run.stdout.endswith("recovered\n") and run.stderr.count("invalid pointer") == 100
        except subprocess.TimeoutExpired:
            ended, good = "it hangs", False
        if not good:
            failures.append(name)
            print(f"FAIL {name}, after a siglongjmp from each SIGABRT, with {options}: {ended}")
print(f"{len(names) - len(failures)} of {len(names)} misuses are reported well")
sys.exit(1 if failures else 0)
