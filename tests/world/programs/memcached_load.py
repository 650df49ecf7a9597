"""Sets and gets values of many sizes over eight connections."""

import socket
import sys
from concurrent.futures import ThreadPoolExecutor

PORT = int(sys.argv[1])
KEYS = 2500


def work(client: int) -> int:
    right = 0
    with socket.create_connection(("127.0.0.1", PORT)) as connection:
        file = connection.makefile("rwb")
        for key in range(KEYS):
            value = bytes([65 + (key + client) % 26]) * (key * 7 % 4000 + 1)
            file.write(b"set k%d-%d 0 0 %d\r\n%s\r\nget k%d-%d\r\n" % (client, key, len(value), value, client, key))
            file.flush()
            stored, head = file.readline(), file.readline()
            got = file.read(int(head.split()[3]) + 2)[:-2]
            right += stored == b"STORED\r\n" and got == value and file.readline() == b"END\r\n"
    return right


with ThreadPoolExecutor(8) as pool:
    print(sum(pool.map(work, range(8))), "values were right")
