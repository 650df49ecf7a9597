"""Rates per second between two moments of a process."""

from dataclasses import dataclass

from numalloc_tools.observe.model import Moment
from numalloc_tools.observe.remote import node_seconds


@dataclass(frozen=True)
class Rates:
    seconds: float
    cpus: float  # CPU seconds per second
    node_cpus: dict[int, float]
    minor_faults: float
    major_faults: float
    migrations: float | None
    statistics: dict[int, dict[str, float]]  # node -> name -> change of the library's statistic


def rates(earlier: Moment, later: Moment) -> Rates | None:
    seconds = later.at - earlier.at
    if seconds <= 0 or earlier.started != later.started:
        return None
    statistics = {}
    if earlier.page and later.page:
        before = {record.node: record.values for record in earlier.page.nodes}
        for record in later.page.nodes:
            known = before.get(record.node, {})
            statistics[record.node] = {name: (value - known[name]) / seconds for name, value in record.values.items() if name in known}
    return Rates(
        seconds=seconds,
        cpus=(later.cpu_seconds - earlier.cpu_seconds) / seconds,
        node_cpus={node: ran / seconds for node, ran in node_seconds(later, earlier).items()},
        minor_faults=(later.minor_faults - earlier.minor_faults) / seconds,
        major_faults=(later.major_faults - earlier.major_faults) / seconds,
        migrations=_migrations(earlier, later) / seconds if later.migrations is not None else None,
        statistics=statistics,
    )


def _migrations(earlier: Moment, later: Moment) -> int:
    """Counts running threads only: the count of an ended one is lost, and must not be subtracted."""
    before = {thread.tid: thread.migrations or 0 for thread in earlier.threads}
    return sum(max(0, (thread.migrations or 0) - before.get(thread.tid, 0)) for thread in later.threads)
