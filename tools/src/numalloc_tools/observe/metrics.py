"""The figures of processes as metrics for Prometheus, read anew for each scrape."""

import time
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from numalloc_tools import statistics_table as table_of
from numalloc_tools.machine.online import Machine
from numalloc_tools.observe.model import INTERLEAVED, Moment
from numalloc_tools.observe.process import TICKS
from numalloc_tools.observe.remote import remote_share
from numalloc_tools.observe.selection import Selection

_PROCESS = ["pid", "name"]
_NODE = [*_PROCESS, "node"]
_CLASS = [*_NODE, "class"]


class Collector:
    def __init__(self, selection: Selection, machine: Machine):
        self._selection, self._machine = selection, machine
        # Computed once: a start time that varied between scrapes would look like another process.
        self._boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)

    def describe(self) -> list[Metric]:
        """Nothing: registering the collector must not read all processes."""
        return []

    def collect(self) -> Iterator[Metric]:
        families = _Families()
        moments = self._selection.moments(self._machine)
        families.gauge("numalloc_processes", "Processes that the exporter reads", []).add_metric([], len(moments))
        for moment in moments:
            _process(families, moment, self._boot + moment.started / TICKS)
            _library(families, moment)
        return iter(families.found.values())


class _Families:
    """The metrics by name; all processes add samples to the same ones."""

    def __init__(self) -> None:
        self.found: dict[str, Metric] = {}

    def gauge(self, name: str, text: str, labels: list[str], unit: str = "") -> GaugeMetricFamily:
        return self._family(GaugeMetricFamily, name, text, labels, unit)

    def counter(self, name: str, text: str, labels: list[str], unit: str = "") -> CounterMetricFamily:
        return self._family(CounterMetricFamily, name, text, labels, unit)

    def _family(self, kind, name: str, text: str, labels: list[str], unit: str):
        if unit and not name.endswith(f"_{unit}"):
            name += f"_{unit}"
        if name not in self.found:
            self.found[name] = kind(name, text, labels=labels, unit=unit)
        return self.found[name]


def _process(families: _Families, moment: Moment, started: float) -> None:
    labels = [str(moment.pid), moment.name]
    memory = moment.memory
    for name, text, value in (
        ("numalloc_process_anonymous", "Resident anonymous memory: heap, stacks, mappings without a file", memory.anonymous),
        ("numalloc_process_file", "Resident pages of mapped files", memory.files),
        ("numalloc_process_shared", "Resident shared memory", memory.shared),
        ("numalloc_process_swapped", "Memory that is swapped out", memory.swapped),
        ("numalloc_process_huge", "Anonymous and shared memory on transparent huge pages", memory.huge),
        ("numalloc_process_hugetlb", "Memory on pages of hugetlbfs", memory.hugetlb),
    ):
        if value is not None:
            families.gauge(name, text, _PROCESS, "bytes").add_metric(labels, value)
    families.gauge("numalloc_process_start_time", "Start time in seconds since 1970", _PROCESS, "seconds").add_metric(
        labels, round(started, 2)
    )
    families.counter("numalloc_process_cpu", "CPU time of all threads of the process", _PROCESS, "seconds").add_metric(
        labels, moment.cpu_seconds
    )
    faults = families.counter("numalloc_process_page_faults", "Page faults; major ones wait for a disk", [*_PROCESS, "kind"])
    faults.add_metric([*labels, "minor"], moment.minor_faults)
    faults.add_metric([*labels, "major"], moment.major_faults)
    if moment.migrations is not None:
        # The counts of ended threads are lost, so the sum can fall: it is not a counter.
        text = "Moves of running threads from CPU to CPU"
        families.gauge("numalloc_process_thread_migrations", text, _PROCESS).add_metric(labels, moment.migrations)
    if share := remote_share(moment):
        for name, text, part in (
            ("numalloc_process_remote_least", "Share of memory on nodes where none of the process's threads ran last", share.least),
            (
                "numalloc_process_remote_if_used_alike",
                "Share of remote memory if all threads used all memory equally (an estimate)",
                share.alike,
            ),
        ):
            families.gauge(name, text, _PROCESS, "ratio").add_metric(labels, part)
    _nodes(families, moment, labels)


def _nodes(families: _Families, moment: Moment, labels: list[str]) -> None:
    for node in moment.shown_nodes:
        of_node = [*labels, str(node)]
        families.gauge("numalloc_process_node_threads", "Threads whose last CPU is on the node", _NODE).add_metric(
            of_node, moment.threads_on.get(node, 0)
        )
        held = (moment.nodes or {}).get(node)
        if held is None:
            continue
        for name, text, value in (
            ("numalloc_process_node_own", "Anonymous and shared memory on the node", held.own),
            ("numalloc_process_node_file", "Pages of mapped files on the node", held.files),
            ("numalloc_process_node_off_policy", "Memory on the node whose policy names only other nodes", held.off_policy),
        ):
            families.gauge(name, text, _NODE, "bytes").add_metric(of_node, value)


def _library(families: _Families, moment: Moment) -> None:
    families.gauge("numalloc_process_page_found", "1 if the library's page of statistics was read", _PROCESS).add_metric(
        [str(moment.pid), moment.name], 1 if moment.page else 0
    )
    if moment.page is None:
        return
    for name, value in moment.page.process.items():
        _statistic(families, table_of.statistic(table_of.PROCESS, name), "numalloc_process", _PROCESS).add_metric(
            [str(moment.pid), moment.name], value
        )
    for record in moment.page.nodes:
        labels = [str(moment.pid), moment.name, _node_name(record.node)]
        for name, value in record.values.items():
            _statistic(families, table_of.statistic(table_of.NODE, name), "numalloc_node", _NODE).add_metric(labels, value)
    for of_class in moment.page.classes:
        if not any(of_class.values.values()):  # enough for most classes of most programs
            continue
        labels = [str(moment.pid), moment.name, _node_name(of_class.node), str(of_class.size)]
        for name, value in of_class.values.items():
            _statistic(families, table_of.statistic(table_of.CLASS, name), "numalloc_class", _CLASS).add_metric(labels, value)


def _statistic(families: _Families, known: table_of.Statistic, prefix: str, labels: list[str]):
    make = families.counter if known.grows else families.gauge
    return make(f"{prefix}_{known.name}", known.text, labels, "" if known.unit == "errno" else known.unit)


def _node_name(node: int) -> str:
    return "interleaved" if node == INTERLEAVED else str(node)
