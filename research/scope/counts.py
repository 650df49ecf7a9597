"""What was counted, as arrays: a row for each CPU or thread, a column for each node."""

from dataclasses import dataclass

import numpy as np

VERSION = 2
CAUSES = ("cold", "capacity", "true_sharing", "false_sharing", "upgrade")
_NUMBERS = ("instructions", "loads", "stores", "l1_misses", "l2_misses", "llc_hits")
_TLB = ("l1_misses", "l2_misses", "walk_lines_local", "walk_lines_remote")


@dataclass(frozen=True)
class Rows:
    """Counts side by side: vectors by row, matrices by row and node."""

    nodes: np.ndarray  # where each row ran
    instructions: np.ndarray
    loads: np.ndarray
    stores: np.ndarray
    l1_misses: np.ndarray
    l2_misses: np.ndarray
    llc_hits: np.ndarray
    fills: np.ndarray  # by the page's home
    transfers: np.ndarray  # by the giver
    writebacks: np.ndarray
    causes: dict[str, np.ndarray]
    tlb: dict[str, np.ndarray]

    @property
    def home(self) -> np.ndarray:
        """True where a column is the row's own node."""
        return self.nodes[:, None] == np.arange(self.fills.shape[1])[None, :]

    def local(self, matrix: np.ndarray) -> np.ndarray:
        return np.where(self.home, matrix, 0).sum(axis=1)

    def remote(self, matrix: np.ndarray) -> np.ndarray:
        return np.where(self.home, 0, matrix).sum(axis=1)

    def by_node(self, matrix: np.ndarray, nodes: int) -> np.ndarray:
        """Node of the row by node of the column."""
        found = np.zeros((nodes, nodes))
        np.add.at(found, self.nodes, matrix)
        return found


def rows(entries: list[dict], places: list[int], nodes: int) -> Rows:
    """`places`: the node of each."""

    def column(name: str) -> np.ndarray:
        return np.array([float(entry[name]) for entry in entries])

    def matrix(name: str) -> np.ndarray:
        found = np.array([entry[name] for entry in entries], dtype=float).reshape(len(entries), nodes)
        for row, place, entry in zip(found, places, entries):
            if f"remote_{name}" in entry:
                _as_it_was(row, place, entry[f"remote_{name}"])
        return found

    def deep(outer: str, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        return {name: np.array([float(entry[outer][name]) for entry in entries]) for name in names}

    return Rows(
        nodes=np.array(places, dtype=int),
        **{name: column(name) for name in _NUMBERS},
        fills=matrix("fills"),
        transfers=matrix("transfers"),
        writebacks=matrix("writebacks"),
        causes=deep("causes", CAUSES),
        tlb=deep("tlb", _TLB),
    )


def _as_it_was(row: np.ndarray, home: int, remote: float) -> None:
    """A thread that moved about was local to several nodes: what was remote at the time is known, and remains so."""
    local = row.sum() - remote
    row[home] = 0
    others = row.sum()
    if others:
        row *= remote / others
    elif len(row) > 1:
        row[:] = remote / (len(row) - 1)
    row[home] = local


@dataclass(frozen=True)
class Scope:
    """One run's JSON, read."""

    nodes: int
    cpus: Rows
    threads: Rows
    raw: dict

    @property
    def matrix(self) -> np.ndarray:
        """Lines read from memory: node of the CPU by home of the page."""
        return self.cpus.by_node(self.cpus.fills, self.nodes)

    @property
    def transfer_matrix(self) -> np.ndarray:
        """Lines from other caches: node of the CPU by node of the giver."""
        return self.cpus.by_node(self.cpus.transfers, self.nodes)

    @property
    def instructions(self) -> float:
        return float(self.cpus.instructions.sum())

    @property
    def fills(self) -> float:
        return float(self.cpus.fills.sum())

    @property
    def remote_fills(self) -> float:
        return float(self.cpus.remote(self.cpus.fills).sum())

    @property
    def remote_share(self) -> float:
        return self.remote_fills / self.fills if self.fills else 0.0

    @property
    def transfers(self) -> float:
        return float(self.cpus.transfers.sum())

    @property
    def remote_transfers(self) -> float:
        return float(self.cpus.remote(self.cpus.transfers).sum())

    @property
    def balance(self) -> float:
        """Lines from the fullest node's memory to the mean: 1 is even, the number of nodes is all from one."""
        return _fullest(self.matrix.sum(axis=0))

    @property
    def work_balance(self) -> float:
        """The same of instructions by the node that they ran on: all threads on one node are local, and slow."""
        return _fullest(np.bincount(self.cpus.nodes, self.cpus.instructions, self.nodes))

    @property
    def tlb_misses(self) -> float:
        """Those that no TLB has, so that the page table is walked."""
        return float(self.cpus.tlb["l2_misses"].sum())

    def cause(self, name: str) -> float:
        return float(self.cpus.causes[name].sum())

    def instructions_of(self, party: str) -> float | None:
        """None where it was not counted."""
        found = self.raw["parties"].get(party)
        return None if found is None else float(found["instructions"])

    def remote_lines_of(self, party: str) -> float | None:
        """What its own instructions fetched from other nodes' memory and caches."""
        found = self.raw["parties"].get(party)
        return None if found is None else float(found["remote_fills"] + found["remote_transfers"])

    def allocator_remote_lines_on(self, what: str) -> float | None:
        """The part of them that was for `objects`, or for the allocator's `own` data; None where objects were not watched."""
        if "allocator_data" not in self.raw:
            return None
        part = self.raw["allocator_data"][what]
        return float(part["remote_fills"] + part["remote_transfers"])


def _fullest(by_node: np.ndarray) -> float:
    mean = by_node.mean()
    return float(by_node.max() / mean) if mean else 1.0


def read(raw: dict) -> Scope:
    if raw.get("version") != VERSION:
        raise ValueError(f"counts of version {raw.get('version')}; this reads {VERSION}")
    machine = raw["machine"]
    nodes = machine["nodes"]
    cpus, threads = raw["cpus"], raw["threads"]
    return Scope(
        nodes,
        rows(cpus, [machine["node_of_cpu"][one["cpu"]] for one in cpus], nodes),
        rows(threads, [one["node_of_most"] for one in threads], nodes),
        raw,
    )
