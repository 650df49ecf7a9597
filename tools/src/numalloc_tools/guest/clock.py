"""The frequency of the host's time stamp counter. A guest that measures it on a busy host keeps a wrong value, so the lab
measures it here, and passes it to the guest."""

import ctypes
import mmap
import platform
import time

_READ_TSC = b"\x0f\x31\x48\xc1\xe2\x20\x48\x09\xd0\xc3"  # rdtsc; shl $32,%rdx; or %rdx,%rax; ret
_MEASURE_SECONDS = 0.1
_TICKS_PER_SECOND = 250  # CONFIG_HZ of Debian's kernels


def kernel_arguments() -> list[str]:
    khz = tsc_khz()
    if khz is None:
        return []
    return [f"tsc_early_khz={khz}", f"lpj={khz * 1000 // _TICKS_PER_SECOND}"]


def tsc_khz() -> int | None:
    if platform.machine() != "x86_64":
        return None
    try:
        code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:  # a hardened host: the guest measures it itself
        return None
    code.write(_READ_TSC)
    read_tsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
    tsc0, time0 = _sample(read_tsc)
    time.sleep(_MEASURE_SECONDS)
    tsc1, time1 = _sample(read_tsc)
    return round((tsc1 - tsc0) * 1e6 / (time1 - time0))


def _sample(read_tsc) -> tuple[int, int]:
    """Counter and clock at one moment: the least disturbed of several tries."""
    tries = []
    for _ in range(20):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        tsc = read_tsc()
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        tries.append((after - before, tsc, (before + after) // 2))
    _, tsc, moment = min(tries)
    return tsc, moment
