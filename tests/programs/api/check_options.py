"""check_options.py OPTIONS_TABLE experiments|users COMMAND...: options are read from the environment: those of GOOD and
BAD below. A good value is silent; a bad one is one line on stderr that names the variable, the value and what is
accepted, and the program runs on with the default; verbose speaks; a file of binding rules is
reported with its name and line."""

import os
import re
import subprocess
import sys
import tempfile

table, has_experiments, command = sys.argv[1], sys.argv[2] == "experiments", sys.argv[3:]
kinds = dict(re.findall(r"^NUMALLOC_(?:LIVE_)?OPTION\((\w+), (\w+),", open(table).read(), re.M))
experiments = re.findall(r"^NUMALLOC_EXPERIMENT_OPTION\((\w+),", open(table).read(), re.M)
GOOD = {
    "binding": ["auto", "interleave", "saturate", "none"],
    "memory_binding": ["preferred", "strict", "none"],
    "memory": ["local", "interleave"],
    "interleave": ["off", "serial", "all"],
    "realloc_keeps_node": ["0", "1", "no"],
    "thp": ["system", "on", "off"],
    "purge_delay": ["0", "-1", "1000", "50ms", "2s"],
    "reserve": ["0", "64G", "512M", "8589934592"],
    "deepbind": ["share", "drop", "keep"],
    "profile": ["off", "0"],
    "profile_signals": ["0", "yes"],
    "guarded": ["0", "off", "5000", "1/1000000000"],
    "backtrace": ["0", "on"],
    "verbose": ["0"],
    "statistics": ["none"],
    "statistics_signal": ["USR1", "SIGUSR2", "12", "none"],
    "statistics_page": ["0", "1"],
}
BAD = {
    "binding": ["sideways", "INTERLEAVE ", "1"],
    "memory_binding": ["maybe"],
    "memory": [
        "remote",
        "preferred",
        "preferred:",
        "preferred:x",
        "preferred:0,1",
        "preferred:1024",
        "bind:",
        "bind:3-1",
        "bind:0;1",
        "bind:0-99999",
        "local ",
    ],
    "interleave": ["some", "1"],
    "realloc_keeps_node": ["2", "local"],
    "thp": ["perhaps"],
    "purge_delay": ["soon", "-5", "10 minutes", "99999999999999999999"],
    "reserve": ["lots", "-1", "5Q"],
    "deepbind": ["dropped", "1"],
    "profile": ["often", "2G", "-1", "512 K"],
    "profile_signals": ["2", "USR1"],
    "guarded": ["1/0", "1/", "2/5000", "1/1000000001", "-1", "often"],
    "backtrace": ["2", "full"],
    "verbose": ["2", "yes please"],
    "statistics_signal": ["USR3", "0", "KILL", "65", "USR1 "],
    "statistics_page": ["2", "page"],
}
ACCEPTED = {
    "binding": "saturate",
    "memory_binding": "strict",
    "memory": "bind:NODES",
    "interleave": "serial",
    "realloc_keeps_node": "yes",
    "thp": "off",
    "purge_delay": "ms",
    "reserve": "G",
    "deepbind": "keep",
    "profile": "512K",
    "profile_signals": "yes",
    "guarded": "1/N",
    "backtrace": "yes",
    "verbose": "1",
    "statistics_signal": "WINCH",
    "statistics_page": "yes",
}
if has_experiments:
    flags = ("origin_free", "remote_batching", "incremental_sharing")
    GOOD |= {"hand_over": ["6K", "24576"], **{name: ["0", "1", "off"] for name in flags}}
    BAD |= {"hand_over": ["lots", "-1"], **{name: ["2", "maybe"] for name in flags}}
    ACCEPTED |= {"hand_over": "G", **dict.fromkeys(flags, "yes")}
assert kinds and GOOD.keys() - set(experiments) <= kinds.keys(), kinds
failures = [f"{name} has no good values here" for name, kind in kinds.items() if name not in GOOD and kind != "Path"]
failures += [f"{name} has no bad values here" for name, kind in kinds.items() if name not in BAD and kind != "Path"]


def run(**settings):
    environment = {**os.environ, **settings}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    if result.returncode != 0 or result.stdout != "done\n":
        failures.append(f"{settings}: status {result.returncode}, stdout {result.stdout!r}")
    return result.stderr


for name, values in GOOD.items():
    for value in values:
        said = run(**{f"NUMALLOC_{name.upper()}": value})
        if said:
            failures.append(f"{name}={value} is good, but: {said}")
for name, values in BAD.items():
    for value in values:
        said = run(**{f"NUMALLOC_{name.upper()}": value}).splitlines()
        wanted = (f"NUMALLOC_{name.upper()}", value.strip(), ACCEPTED[name])
        if len(said) != 1 or not all(word in said[0] for word in wanted):
            failures.append(f"{name}={value}: one line with {wanted} expected, got {said}")
for name in [] if has_experiments else experiments:
    variable = f"NUMALLOC_{name.upper()}"
    said = run(**{variable: "0"}).splitlines()
    if len(said) != 1 or variable not in said[0] or "experiments" not in said[0]:
        failures.append(f"{name} is for experiments: one line that says so expected, got {said}")
if not experiments or not run(NUMALLOC_VERBOSE="1"):
    failures.append("verbose says nothing, or the table has no experiments")

with tempfile.TemporaryDirectory() as folder:
    rules = os.path.join(folder, "rules.txt")
    for text, line in (("# fine so far\n0-3 0\nfour 0\n", 3), ("0 zero\n", 1), ("0 0\n\n1\n", 3), ("5-2 0\n", 1)):
        open(rules, "w").write(text)
        said = run(NUMALLOC_BINDING="file", NUMALLOC_BINDING_FILE=rules).splitlines()
        if len(said) != 1 or rules not in said[0] or not re.search(rf"\b{line}\b", said[0].replace(rules, "")):
            failures.append(f"binding file {text!r}: one line naming the file and line {line} expected, got {said}")
    open(rules, "w").write("# nothing wrong\n0-3 0\n4,6 0   # a comment\n\n")
    if said := run(NUMALLOC_BINDING="file", NUMALLOC_BINDING_FILE=rules):
        failures.append(f"a good binding file, but: {said}")
    missing = os.path.join(folder, "missing")
    said = run(NUMALLOC_BINDING="file", NUMALLOC_BINDING_FILE=missing).splitlines()
    if len(said) != 1 or missing not in said[0]:
        failures.append(f"a binding file that is not there: one line naming it expected, got {said}")
for memory, interleave, word in (
    ("bind:0", "serial", "NUMALLOC_INTERLEAVE has no effect"),
    ("preferred:0", "all", "NUMALLOC_INTERLEAVE has no effect"),
    ("bind:1023", "off", "NUMALLOC_MEMORY names a node that this machine does not have"),
):
    said = run(NUMALLOC_MEMORY=memory, NUMALLOC_INTERLEAVE=interleave).splitlines()
    if len(said) != 1 or word not in said[0]:
        failures.append(f"memory={memory} and interleave={interleave}: one line with {word!r} expected, got {said}")
# Nobody reads stderr.
reader, writer = os.pipe()
os.close(reader)
for settings in ({"NUMALLOC_VERBOSE": "1"}, {"NUMALLOC_THP": "perhaps"}):
    done = subprocess.run(command, env=os.environ | settings, stdout=subprocess.PIPE, stderr=writer, timeout=300)
    if done.returncode != 0:
        failures.append(f"{settings}, nobody reads stderr: status {done.returncode}")
os.close(writer)
for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
