"""Worker processes by fork from a threaded parent, by spawn and by a fork server."""

import multiprocessing
import threading


def work(seed: int) -> int:
    table = {str(i * seed): "x" * (i % 200) for i in range(20000)}
    return sum(map(len, table.values())) + len(table)


if __name__ == "__main__":
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            [bytes(n) for n in range(1000, 3000, 7)]

    threads = [threading.Thread(target=churn) for _ in range(3)]
    for thread in threads:
        thread.start()
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(method, sum(pool.map(work, range(1, 13))))
            # Leaving the block would end the workers by a signal, sooner or later than they end by themselves.
            pool.close()
            pool.join()
    stop.set()
    for thread in threads:
        thread.join()
