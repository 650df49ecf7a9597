"""The share of a process's memory that is remote to the threads that use it. Which thread uses which page is not visible
from outside, so there are two figures: a lower bound, and an estimate for equal use."""

from dataclasses import dataclass

from numalloc_tools.observe.model import Moment


@dataclass(frozen=True)
class RemoteShare:
    least: float  # on nodes where no thread ran last: its users are elsewhere
    alike: float  # if each thread used all memory equally, in proportion to its CPU time


def remote_share(moment: Moment, earlier: Moment | None = None) -> RemoteShare | None:
    """Weighted by the CPU time since `earlier`, or since the start."""
    own = {node: held.own for node, held in (moment.nodes or {}).items()}
    total = sum(own.values())
    if not total or not moment.threads:
        return None
    ran = node_seconds(moment, earlier)
    busy = sum(ran.values())
    if busy:
        weight = {node: seconds / busy for node, seconds in ran.items()}
    else:  # no thread ran: all have the same weight
        weight = {node: count / len(moment.threads) for node, count in moment.threads_on.items()}
    near = sum(held * weight.get(node, 0.0) for node, held in own.items()) / total
    without = sum(held for node, held in own.items() if node not in moment.threads_on) / total
    return RemoteShare(without, max(without, 1.0 - near))


def node_seconds(moment: Moment, earlier: Moment | None = None) -> dict[int, float]:
    """CPU time on each node. A thread's whole time counts for the node where it ran last."""
    before = {thread.tid: thread.cpu_seconds for thread in earlier.threads} if earlier else {}
    found: dict[int, float] = {}
    for thread in moment.threads:
        found[thread.node] = found.get(thread.node, 0.0) + max(0.0, thread.cpu_seconds - before.get(thread.tid, 0.0))
    return dict(sorted(found.items()))
