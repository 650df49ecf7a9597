"""offline.py COMMAND...: runs the command with no network but loopback.

Run under `unshare --net`, where even loopback is down: switches it on. Python alone, since a minimal system has no ip(8)."""

import array
import fcntl
import os
import socket
import struct
import sys

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def switch_loopback_on() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = array.array("b", struct.pack("16sH14x", b"lo", 0))
        fcntl.ioctl(any_socket, SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("H", request, 16)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


if __name__ == "__main__":
    switch_loopback_on()
    os.execvp(sys.argv[1], sys.argv[1:])
