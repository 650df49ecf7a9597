"""counts.py LIBRARY PROGRAMS GOLDEN: what a change costs that no clock would show. LIBRARY has the clock of steady_clock.cpp,
because what a loop keeps and what rests go by time. Programs of bench/ with one thread and a fixed seed: instructions and cache
misses in cachegrind's model (32 KiB, and 1 MiB behind it, with 64 sets each: where pages lie makes no difference), within 2 percent
of the golden file; page faults without huge pages, within 8 of it. Less than the golden file says fails as well: then it is to be
written anew, by NUMALLOC_UPDATE=1, and the change says why. What other compilers and C libraries make of the programs is not
compared."""

import json
import os
import platform
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Each a second or two under valgrind.
SCALE = 0.005
NAMES = (
    "threadtest larson cache-scratch amd-numa allocator-study neighbours cache-thrash exchange generations growing-arrays "
    "large-blocks lists trees hash-maps server strings json-trees zeroed aligned all-classes"
).split()
CACHE = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,256,64", "--cachegrind-out-file=/dev/null"]
COUNTS = {"instructions": r"I +refs", "first misses": r"D1 +misses", "last misses": r"LL +misses"}
PART = 0.02
PAGES = 8

library, programs, golden_file = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
environment = {
    **os.environ,
    "LD_PRELOAD": library,
    "LD_BIND_NOW": "1",
    "NUMALLOC_THP": "off",
    # The same memset on every machine.
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-ERMS,-FSRM",
}


def made_by():
    compiler = subprocess.run(["readelf", "-p", ".comment", programs / NAMES[0]], capture_output=True, text=True).stdout
    found = re.search(r"GCC: .*?([\d.]+)$|clang version ([\d.]+)", compiler, re.M)
    return " ".join([platform.machine(), found.group(0) if found else "?", *platform.libc_ver()])


def command(name):
    return ["setarch", "-R", programs / name, "--threads", "1", "--scale", str(SCALE)]


def count(name):
    run = command(name)
    run[2:2] = ["valgrind", "--tool=cachegrind", *CACHE]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return {what: int(re.search(rf"{text}: +([\d,]+)", done.stderr)[1].replace(",", "")) for what, text in COUNTS.items()}


def faults(run):
    with subprocess.Popen(run, env=environment, stdout=subprocess.DEVNULL) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, run
    return used.ru_minflt


def missed(counts, golden):
    def far(what):
        allowed = PAGES if what == "page faults" else PART * golden[what]
        return abs(counts[what] - golden[what]) > allowed

    return [what for what in golden if far(what)]


def measured(name):
    counts = count(name)
    # Less those of the loader, which maps more or less of a file at a fault from one kernel to the next.
    counts["page faults"] = faults(command(name)) - faults([*command(name)[:3], "--help"])
    return counts


update = os.environ.get("NUMALLOC_UPDATE") == "1"
wanted = json.loads(golden_file.read_text()) if golden_file.exists() else {}
if not update and wanted["made by"] != made_by():
    print(f"skipped: the golden counts are of {wanted['made by']}, here is {made_by()}")
    sys.exit(77)
with ThreadPoolExecutor(os.cpu_count()) as pool:
    found = dict(zip(NAMES, pool.map(measured, NAMES), strict=True))
if update:
    golden_file.write_text(json.dumps({"made by": made_by(), "programs": found}, indent=1) + "\n")
failed = False
for name, counts in found.items():
    golden = counts if update else wanted["programs"][name]
    wrong = missed(counts, golden)
    failed |= bool(wrong)
    print(
        f"{name:18}",
        *(f"{what} {counts[what]:,} ({counts[what] / golden[what]:.3f}){' MISSED' if what in wrong else ''}" for what in golden),
        sep="  ",
    )
sys.exit(1 if failed else 0)
