"""check_statistics.py COMMAND...: statistics at exit, on a signal and in the shared page; COMMAND runs statistics_program
with the library."""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = sys.argv[1:]


def run(what, **options):
    environment = os.environ | {f"NUMALLOC_{name.upper()}": str(value) for name, value in options.items()}
    return subprocess.run([*COMMAND, what], env=environment, capture_output=True, text=True, timeout=300)


def path_of(process):
    return Path(f"/dev/shm/numalloc-{os.geteuid()}-{process.pid}")


def page_of(process):
    """The statistics page of a running program, empty where it has none."""
    try:
        return path_of(process).read_bytes()
    except FileNotFoundError:
        return b""


def seen_of(process, look):
    """What look() says at last, when it has something to say; then the process is killed, and its page goes."""
    until = time.monotonic() + 300
    while not (seen := look()) and time.monotonic() < until and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.wait()
    path_of(process).unlink(missing_ok=True)
    return seen


def live(document, size):
    return sum(c["live"] for n in document["nodes"] for c in n["classes"] if c["object_bytes"] == size)


folder = Path(tempfile.mkdtemp(prefix="numalloc-statistics-"))

# Nothing is said that was not asked for.
done = run("exit")
assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done

# At exit, as text: the class of 3,000 bytes has its 1,000 objects.
text = run("exit", statistics="exit").stderr
assert re.search(r"^numalloc \d+\.\d+\.\d+, process \d+$", text, re.M), text
assert re.search(r"^ +3136 +1000 ", text, re.M), text
assert "option statistics=exit" in text, text

# As JSON, appended: a line a process.
for _ in range(2):
    assert run("exit", statistics=folder / "all.json").returncode == 0
documents = [json.loads(line) for line in (folder / "all.json").read_text().splitlines()]
assert len(documents) == 2 and documents[0]["process"]["id"] != documents[1]["process"]["id"], documents
assert live(documents[0], 3136) == 1000, documents[0]
assert documents[0]["options"]["thp"] == "auto" and documents[0]["options"]["statistics"] == str(folder / "all.json")

# A file for each process, the forked one too.
run("fork", statistics=folder / "one-%p.json")
ones = {path: json.loads(path.read_text()) for path in folder.glob("one-*.json")}
assert sorted(live(d, 3136) for d in ones.values()) == [1000, 1500], ones
assert all(str(d["process"]["id"]) in path.name for path, d in ones.items())
assert sorted(d["process"]["forks"] for d in ones.values()) == [0, 1]

# What ends otherwise writes nothing, and is not disturbed.
assert run("_exit", statistics=folder / "none.json").returncode == 0
assert run("abort", statistics=folder / "none.json").returncode == -6
assert not (folder / "none.json").exists()
bad = run("exit", statistics="/no/such/folder/x.json")
assert bad.returncode == 0 and re.fullmatch(r"numalloc: statistics cannot be written to /no/such/folder/x.json: error 2\n", bad.stderr), bad

# A program that ends in the handler of a signal, in the middle of malloc, ends all the same.
for _ in range(12):
    assert run("exit_in_handler", statistics=folder / "handler.json").returncode == 3

# A path is any bytes, JSON is UTF-8.
odd = os.fsencode(folder) + b'/\xff \xc3\xa4 \xed\xa0\x80 "\\ \x01%.json'
subprocess.run([*COMMAND, "exit"], env=os.environb | {b"NUMALLOC_STATISTICS": odd}, check=True, timeout=300)
with open(odd, "rb") as stream:
    option = json.loads(stream.read().decode())["options"]["statistics"]
assert option.endswith('/\ufffd \u00e4 \ufffd\ufffd\ufffd "\\ \x01%.json'), option

# Nobody reads stderr, and a file may not grow: neither ends the program by a signal, at its start or at its end.
reader, writer = os.pipe()
os.close(reader)
done = subprocess.run([*COMMAND, "exit"], env=os.environ | {"NUMALLOC_STATISTICS": "exit"}, stderr=writer, timeout=300)
os.close(writer)
assert done.returncode == 0, done
done = subprocess.run(
    ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", *COMMAND, "exit"],
    timeout=300,
    env=os.environ | {"NUMALLOC_STATISTICS": str(folder / "limited.json"), "NUMALLOC_STATISTICS_PAGE": "1"},
)
assert done.returncode == 0, done

# stderr is what it was at the start. A program's own files get nothing, whatever their descriptors are.
own = folder / "own"
at_exit = os.environ | {"NUMALLOC_STATISTICS": "exit"}
done = subprocess.run([*COMMAND, "reuse", own], env=at_exit, capture_output=True, text=True, timeout=300)
assert done.stderr.startswith("numalloc ") and own.stat().st_size == 0, (done, own.stat())
closed = ["sh", "-c", 'exec "$@" 2>&-', "sh"]
done = subprocess.run([*closed, *COMMAND, "open", own], env=at_exit, stdout=subprocess.PIPE, timeout=300)
assert done.returncode == 0 and done.stdout == b"2" and own.stat().st_size == 0, (done, own.stat())

done = subprocess.run([*COMMAND, "closed", own], env=at_exit, stderr=subprocess.PIPE, timeout=300)
assert done.returncode == 0 and done.stderr == b"" and own.stat().st_size == 0, (done, own.stat())

# On a signal, any number of times, wherever it meets the program.
assert run("signal", statistics_signal="USR1").stderr.startswith("numalloc "), "no statistics on a signal"
burst = run("burst", statistics_signal="SIGUSR1", statistics=folder / "burst.json")
assert (burst.returncode, burst.stdout) == (0, "done\n"), burst
written = [json.loads(line) for line in (folder / "burst.json").read_text().splitlines()]
assert len(written) > 1, len(written)  # signals that come while one waits are one

# The page is there while the program runs, and gone afterwards.
if os.access("/dev/shm", os.W_OK):
    paged = os.environ | {
        "NUMALLOC_STATISTICS_PAGE": "1",
        "NUMALLOC_STATISTICS_SIGNAL": "USR1",
        "NUMALLOC_STATISTICS": str(folder / "x.json"),
    }
    process = subprocess.Popen([*COMMAND, "until_closed"], env=paged, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    path = path_of(process)
    seen = set()
    until = time.monotonic() + 300
    while len(seen) < 2 and time.monotonic() < until and process.poll() is None:
        time.sleep(0.01)
        if path.exists() and path.stat().st_size > 0:
            data = path.read_bytes()
            magic, version, header, nodes, node_bytes, classes, class_bytes, start, sequence, at = struct.unpack_from("<8s6I3Q", data)
            if magic == b"NUMASTAT" and sequence % 2 == 0 and at:
                seen.add(at)
    process.stdin.close()
    assert process.wait(300) == 0
    assert (path_mode := path.exists()) is False, "the page outlives its process"
    assert len(seen) == 2, f"{len(seen)} refreshes"
    length = struct.unpack_from("<I", data, header)[0]
    tables = data[header + 4 : header + 4 + length].rstrip(b"\0").split(b"\0\0")
    of_nodes, of_classes, of_process = (names.split(b"\0") for names in tables)
    assert version == 2 and b"small_live" in of_nodes and b"fetched" in of_classes, (version, of_nodes, of_classes)
    assert (node_bytes, class_bytes) == (8 + 8 * len(of_nodes), 8 + 8 * len(of_classes)), (node_bytes, class_bytes)
    assert of_process[:4] == [b"nodes", b"forks", b"refused_binding", b"refused_binding_error"], of_process
    assert struct.unpack_from("<I", data, 56) == (8 * len(of_process),)
    assert start == int(Path("/proc/self/stat").read_text().rsplit(")")[1].split()[19]) or start > 0

    # It says what the kernel refused: here to take locked pages back.
    def refused():
        data = page_of(process)
        if not data:
            return None
        length = struct.unpack_from("<I", data, header)[0]
        figures = dict(zip(of_process, struct.unpack_from(f"<{len(of_process)}Q", data, header + 4 + length + 7 & ~7)))
        return figures if figures[b"refused_discards"] > 0 else None

    process = subprocess.Popen([*COMMAND, "locked"], env=paged | {"NUMALLOC_PURGE_DELAY": "0"}, stdout=subprocess.DEVNULL)
    figures = seen_of(process, refused)
    assert figures and figures[b"nodes"] >= 1 and figures[b"refused_discards_error"] == 22, figures
    # The program that an exec starts is another one. Where none was started there is a page again.
    process = subprocess.Popen([*COMMAND, "exec"], env=paged, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(b"here\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"here\n"
    assert not path_of(process).exists(), "the page of the program before"
    process.communicate()
    process = subprocess.Popen([*COMMAND, "failed_exec"], env=paged, stdout=subprocess.DEVNULL)
    assert seen_of(process, lambda: page_of(process)), "no page after an exec that failed"
    # Another user's eyes see nothing.
    process = subprocess.Popen([*COMMAND, "failed_exec"], env=paged, stdout=subprocess.DEVNULL)
    mode = seen_of(process, lambda: page_of(process) and path_of(process).stat().st_mode)
    assert mode and mode & 0o777 == 0o600, mode
print("statistics are written when they should be")
