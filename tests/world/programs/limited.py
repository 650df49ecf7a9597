"""A program that limits itself to 512 MiB, and must find its limit, and its way on from there."""

import resource
import sys
import threading

limit = 512 << 20
resource.setrlimit(getattr(resource, sys.argv[1]), (limit, limit))
try:
    bytearray(2 << 30)
    print("2 GiB")
except MemoryError:
    print("no 2 GiB")
kept, used = [], 0
try:
    while used < 1 << 30:
        kept.append(bytearray(1000))
        used += 1000
    print("1 GiB of small ones")
except MemoryError:
    kept.clear()
    print("no 1 GiB of small ones")
thread = threading.Thread(target=print, args=("a thread",))
thread.start()
thread.join()
import ctypes  # noqa: E402, F401
import decimal  # noqa: E402, F401
import sqlite3  # noqa: E402, F401

print("imported")
