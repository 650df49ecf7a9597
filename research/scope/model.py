"""Modelled time: what the counted misses would cost on a machine of given latencies and bandwidths.

A row (a CPU or a thread) takes its instructions times cycles an instruction, and each miss the latency of where it
ends, divided by how many the processor has under way at once. Memory of a node and links between packages are queues:
at a load of half, an access waits a ninth of its own latency, at 90 % all of it again, towards 100 % without end. Load
is lines over the modelled time, which itself depends on the waiting: the time is the one at which both agree. The
run takes as long as its longest CPU, or thread, whichever is more.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from research.scope.counts import Rows, Scope
from research.scope.hardware import Hardware

PARTS = ("instructions", "caches", "TLB", "local memory", "remote memory", "other caches", "waiting")
WAIT = 1 / 9  # of a latency, at half load: as much as the latency itself at 90 %
SENSITIVITY = (0.5, 2.0)  # times the latencies of memory and of other caches
_LARGEST = 1e30  # nanoseconds


@dataclass(frozen=True)
class Modelled:
    seconds: float
    longest: str  # "cpu 3" or "thread 5"
    parts: dict[str, float]  # seconds of the longest
    total_parts: dict[str, float]  # of all CPUs together
    cpu_seconds: list[float]
    thread_seconds: list[float]
    memory_load: list[float]  # by node, of 1
    link_load: dict[tuple[int, int], float]  # by link, in its direction
    range: tuple[float, float] = (0.0, 0.0)  # seconds with latencies by SENSITIVITY

    def as_json(self) -> dict:
        return vars(self) | {"link_load": {f"{a}-{b}": load for (a, b), load in self.link_load.items()}}


class _Traffic:
    """Bytes that each node's memory and each link carries over the run, and who waits for them."""

    def __init__(self, scope: Scope, hardware: Hardware):
        self._hardware, nodes = hardware, scope.nodes
        self.links = sorted(hardware.pairs)
        # The share of what goes from one node to another that takes each link: the shortest ways, evenly.
        share = np.zeros((nodes, nodes, len(self.links)))
        place = {link: number for number, link in enumerate(self.links)}
        for source in range(nodes):
            for target in range(nodes):
                a, b = hardware.package_of(source), hardware.package_of(target)
                ways = hardware.routes(a, b) if a != b else []
                for way in ways:
                    for link in way:
                        share[source, target, place[link]] += 1 / len(ways)
        filled = scope.matrix * hardware.line
        written = scope.cpus.by_node(scope.cpus.writebacks, nodes) * hardware.line
        given = scope.transfer_matrix * hardware.line
        self.on_memory = filled.sum(axis=0) + written.sum(axis=0)
        # What a node reads comes from the other one.
        self.on_links = np.einsum("ij,ijk->k", (filled + given).T + written, share)
        self._back = share.transpose(1, 0, 2)
        self._memory_speed = hardware.memory_per_package / hardware.nodes_per_package  # bytes a nanosecond
        self._hop = max(hardware.latency["memory_hops"][0] - hardware.latency["memory"], 0.0)

    @property
    def least(self) -> float:
        """Nanoseconds that the busiest resource needs when it never rests."""
        return max([*(self.on_memory / self._memory_speed), *(self.on_links / self._hardware.link)])

    def loads(self, nanoseconds: float) -> tuple[np.ndarray, np.ndarray]:
        return self.on_memory / (nanoseconds * self._memory_speed), self.on_links / (nanoseconds * self._hardware.link)

    def waits(self, nanoseconds: float) -> tuple[np.ndarray, np.ndarray]:
        """Nanoseconds above the latency, of a fill and of a transfer, by node of the CPU and of the memory or giver."""
        at_memory, on_link = (WAIT * load / (1 - load) for load in self.loads(nanoseconds))
        transfer = self._back @ (on_link * self._hop)
        return transfer + at_memory * self._hardware.latency["memory"], transfer


def modelled(scope: Scope, hardware: Hardware) -> Modelled:
    found = _once(scope, hardware)
    low, high = (_once(scope, hardware.with_memory_times(factor)).seconds for factor in SENSITIVITY)
    return replace(found, range=(low, high))


def _once(scope: Scope, hardware: Hardware) -> Modelled:
    traffic = _Traffic(scope, hardware)
    cpus, threads = _Costs(scope.cpus, hardware), _Costs(scope.threads, hardware)

    def longest(nanoseconds: float) -> float:
        waits = traffic.waits(nanoseconds)
        return max([*cpus.total(waits), *threads.total(waits)], default=0.0)

    # The run cannot be shorter than what its busiest resource needs, where waiting has no end; and the longer it
    # is, the less is waited: there is one time at which what comes out is what was assumed.
    low = max(traffic.least * (1 + 1e-9), longest(_LARGEST))
    high = low
    while high and longest(high) > high:
        high *= 2
    time = brentq(lambda guess: longest(guess) - guess, low, high, rtol=1e-9) if high > low else low
    waits = traffic.waits(time or _LARGEST)
    of_cpus, of_threads = cpus.total(waits), threads.total(waits)
    by_cpu = max(of_cpus, default=0) >= max(of_threads, default=0)
    costs, totals, kind = (cpus, of_cpus, "cpu") if by_cpu else (threads, of_threads, "thread")
    place = int(np.argmax(totals))
    loads = traffic.loads(time or _LARGEST)
    return Modelled(
        seconds=time / 1e9,
        longest=f"{kind} {scope.raw[f'{kind}s'][place][kind]}",
        parts={name: float(value[place]) / 1e9 for name, value in costs.parts(waits).items()},
        total_parts={name: float(value.sum()) / 1e9 for name, value in cpus.parts(waits).items()},
        cpu_seconds=(of_cpus / 1e9).tolist(),
        thread_seconds=(of_threads / 1e9).tolist(),
        memory_load=loads[0].tolist(),
        link_load=dict(zip(traffic.links, loads[1].tolist())),
    )


class _Costs:
    """Nanoseconds of each row, split into PARTS."""

    def __init__(self, rows: Rows, hardware: Hardware):
        self._rows, self._hardware = rows, hardware
        nodes = rows.fills.shape[1]
        latency = {
            what: np.array([[hardware.by_distance(what, i, j) for j in range(nodes)] for i in range(nodes)])
            for what in ("memory", "transfer")
        }
        fills = rows.fills * latency["memory"][rows.nodes] / hardware.parallelism
        near, tlb = hardware.latency, rows.tlb
        afar = latency["memory"][rows.nodes].sum(axis=1) - near["memory"]

        def walked(memory: float | np.ndarray) -> float | np.ndarray:
            """A line of a page table: from memory, or from the caches."""
            return hardware.walk_misses * memory + (1 - hardware.walk_misses) * near["l2"]

        # Who has a line shared and wants to write it asks the others, as one who fetches it: as its transfers take on
        # average, or within the last level where it has none.
        asked = rows.transfers.sum(axis=1)
        given = (rows.transfers * latency["transfer"][rows.nodes]).sum(axis=1)
        upgrade = np.where(asked > 0, given / np.maximum(asked, 1), near["llc"])
        self._parts = {
            "instructions": rows.instructions * hardware.cpi / hardware.clock_ghz,
            "caches": ((rows.l1_misses - rows.l2_misses) * near["l2"] + rows.llc_hits * near["llc"]) / hardware.parallelism,
            "TLB": (tlb["l1_misses"] - tlb["l2_misses"]) * near["tlb_l2"]
            + tlb["walk_lines_local"] * walked(near["memory"])
            + tlb["walk_lines_remote"] * walked(afar / max(nodes - 1, 1)),
            "local memory": rows.local(fills),
            "remote memory": rows.remote(fills),
            "other caches": (given + rows.causes["upgrade"] * upgrade) / hardware.transfer_parallelism,
        }

    def parts(self, waits: tuple[np.ndarray, np.ndarray]) -> dict[str, np.ndarray]:
        rows, (fill, transfer) = self._rows, waits
        fills = (rows.fills * fill[rows.nodes]).sum(axis=1) / self._hardware.parallelism
        transfers = (rows.transfers * transfer[rows.nodes]).sum(axis=1) / self._hardware.transfer_parallelism
        return self._parts | {"waiting": fills + transfers}

    def total(self, waits: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        return np.sum(list(self.parts(waits).values()), axis=0)
