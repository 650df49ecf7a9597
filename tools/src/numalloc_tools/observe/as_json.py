"""A moment as data. Names include units; figures that the kernel does not tell are null."""

from numalloc_tools.observe.model import Moment, Page
from numalloc_tools.observe.rates import Rates
from numalloc_tools.observe.remote import node_seconds, remote_share


def as_json(moment: Moment, earlier: Moment | None = None, rates: Rates | None = None) -> dict:
    memory = moment.memory
    share = remote_share(moment, earlier)
    return {
        "pid": moment.pid,
        "name": moment.name,
        "age_seconds": round(moment.age, 2),
        "under_numalloc": moment.under_numalloc,
        "malloc": moment.malloc or None,
        "resident_bytes": memory.resident,
        "peak_bytes": memory.peak,
        "anonymous_bytes": memory.anonymous,
        "file_bytes": memory.files,
        "shared_bytes": memory.shared,
        "hugetlb_bytes": memory.hugetlb,
        "swapped_bytes": memory.swapped,
        "huge_bytes": memory.huge,
        "huge_share": _rounded(memory.huge_share),
        "remote_share": {"least": _rounded(share.least), "if_used_alike": _rounded(share.alike)} if share else None,
        "minor_faults": moment.minor_faults,
        "major_faults": moment.major_faults,
        "migrations": moment.migrations,
        "cpu_seconds": round(moment.cpu_seconds, 2),
        "nodes": _nodes(moment, earlier),
        "policies": [{"policy": policy, "bytes": held} for policy, held in moment.policies.items()],
        "threads": [
            {
                "tid": thread.tid,
                "name": thread.name,
                "node": thread.node,
                "cpu": thread.cpu,
                "cpu_seconds": round(thread.cpu_seconds, 3),
                "migrations": thread.migrations,
            }
            for thread in moment.threads
        ],
        "rates": _rates(rates) if rates else None,
        "numalloc": _page(moment.page, moment.at) if moment.page else None,
    }


def _nodes(moment: Moment, earlier: Moment | None) -> list[dict]:
    seconds = node_seconds(moment, earlier)
    found = []
    for node in moment.shown_nodes:
        held = moment.nodes.get(node) if moment.nodes is not None else None
        known = moment.nodes is not None
        found.append(
            {
                "node": node,
                "own_bytes": (held.own if held else 0) if known else None,
                "file_bytes": (held.files if held else 0) if known else None,
                "off_policy_bytes": (held.off_policy if held else 0) if known else None,
                "threads": moment.threads_on.get(node, 0),
                "cpu_seconds": round(seconds.get(node, 0.0), 3),
            }
        )
    return found


def _rates(rates: Rates) -> dict:
    return {
        "seconds": round(rates.seconds, 3),
        "cpus": round(rates.cpus, 3),
        "minor_faults_per_second": round(rates.minor_faults, 1),
        "major_faults_per_second": round(rates.major_faults, 1),
        "migrations_per_second": _rounded(rates.migrations, 1),
        "nodes": [
            {"node": node, **{f"{name}_per_second": round(change, 1) for name, change in values.items()}}
            for node, values in rates.statistics.items()
        ],
    }


def _page(page: Page, at: float) -> dict:
    return {
        "age_seconds": round(max(0.0, at - page.updated_at), 3),
        "process": page.process,
        "nodes": [{"node": record.node, **record.values} for record in page.nodes],
        "classes": [{"node": record.node, "class_bytes": record.size, **record.values} for record in page.classes],
    }


def _rounded(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)
