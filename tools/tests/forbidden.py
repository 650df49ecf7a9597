"""Runs a command under a seccomp filter, as containers do:

forbidden.py EPERM|KILL CALL,CALL,... COMMAND...
"""

import ctypes
import os
import sys

ALLOW, ACTIONS = 0x7FFF0000, {"EPERM": 0x50001, "KILL": 0x80000000}
# Named whole: a virtual machine has no cache of the loader's.
library = ctypes.CDLL("/usr/lib/x86_64-linux-gnu/libseccomp.so.2")
library.seccomp_init.restype = ctypes.c_void_p
library.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
library.seccomp_load.argtypes = [ctypes.c_void_p]

action, calls, *command = sys.argv[1:]
context = library.seccomp_init(ALLOW)
for name in calls.split(","):
    number = library.seccomp_syscall_resolve_name(name.encode())
    assert library.seccomp_rule_add(context, ACTIONS[action], number, 0) == 0, name
assert library.seccomp_load(context) == 0
os.execv(command[0], command)
