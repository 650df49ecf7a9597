"""memcached_load.py PORT THREADS LOOPS: python-memcached as the paper has it, from so many processes; compares all it reads."""

import multiprocessing
import sys
import time

import memcache


def load(port: str, number: int, loops: int) -> None:
    client = memcache.Client([f"127.0.0.1:{port}"])
    for i in range(loops):
        keys = {f"{number}-{i % 500}-{k}": f"value {k} " * (1 + (i + k) % 60) for k in range(20)}
        if client.set_multi(keys) != [] or client.get_multi(list(keys)) != keys:
            sys.exit("memcached returned a wrong value")
        if i % 3 == 0:
            client.delete(next(iter(keys)))


def main() -> None:
    port, clients, loops = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    team = [multiprocessing.Process(target=load, args=(port, number, loops)) for number in range(clients)]
    begun = time.perf_counter()
    for one in team:
        one.start()
    for one in team:
        one.join()
    print(f"seconds {time.perf_counter() - begun:.6f}")
    print("all good" if not any(one.exitcode for one in team) else "bad")


main()
