"""`numalloc exporter`: scraped as Prometheus does it, and by Prometheus itself."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import psutil
import pytest
from limits import LIMIT, wait_until
from numalloc_tools import statistics_table
from numalloc_tools.guest import packages
from numalloc_tools.problem import Problem
from observed import COMMAND, MIB, WrittenPage, numalloc, program, start_of
from prometheus_client.openmetrics.parser import text_string_to_metric_families

# Each of them removes pages that others left behind, and makes some: one after the other.
pytestmark = pytest.mark.xdist_group("statistics-pages")

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@contextlib.contextmanager
def exporting(*arguments):
    """The running exporter and its address."""
    process = subprocess.Popen(
        [*COMMAND, "exporter", "--port", "0", *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # ignored where tests run in the background
    )
    try:
        said = process.stderr.readline()
        assert said.startswith("numalloc exporter: http://"), said
        yield process, said.split()[-1]
    finally:
        process.kill()
        process.communicate(timeout=LIMIT)


def scraped(address: str) -> dict[str, list]:
    """Samples by name, read by the strict parser of the standard."""
    request = urllib.request.Request(address, headers={"Accept": OPENMETRICS})
    with urllib.request.urlopen(request, timeout=LIMIT) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        text = answer.read().decode()
    samples: dict[str, list] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            samples.setdefault(sample.name, []).append(sample)
    return samples


def test_scrape_has_the_memory_of_each_node_and_the_librarys_page():
    with program(64) as process, WrittenPage(process.pid, start_of(process.pid)).written():
        created = psutil.Process(process.pid).create_time()
        with exporting("--pid", process.pid) as (_, address):
            samples = scraped(address)
            again = scraped(address)
    labels = {"pid": str(process.pid), "name": samples["numalloc_process_anonymous_bytes"][0].labels["name"]}
    assert samples["numalloc_process_anonymous_bytes"][0].value > 0
    on_nodes = samples["numalloc_process_node_own_bytes"]
    assert sum(sample.value for sample in on_nodes) > 0
    assert {"pid", "name", "node"} == on_nodes[0].labels.keys()
    assert {sample.labels["kind"] for sample in samples["numalloc_process_page_faults_total"]} == {"minor", "major"}
    assert samples["numalloc_process_cpu_seconds_total"][0].value > 0
    started = samples["numalloc_process_start_time_seconds"][0].value
    assert started == pytest.approx(created, abs=2)
    assert again["numalloc_process_start_time_seconds"] == samples["numalloc_process_start_time_seconds"]
    assert 0 <= samples["numalloc_process_remote_least_ratio"][0].value <= 1
    assert samples["numalloc_processes"][0].value == 1
    live = samples["numalloc_class_live_objects"]
    assert [(sample.labels, sample.value) for sample in live] == [(labels | {"node": "0", "class": "64"}, 64)]
    frees = samples["numalloc_node_remote_frees_objects_total"]
    assert {sample.labels["node"]: sample.value for sample in frees} == {"0": 7, "interleaved": 0}
    assert samples["numalloc_node_free_bytes"][0].value == 8192


def test_refused_calls_are_counters_and_their_reason_a_number():
    with program() as process, WrittenPage(process.pid, start_of(process.pid), process=[2, 7, 38]).written():
        with exporting("--pid", process.pid) as (_, address):
            samples = scraped(address)
    assert [sample.value for sample in samples["numalloc_process_refused_binding_calls_total"]] == [7]
    assert [sample.value for sample in samples["numalloc_process_refused_binding_error"]] == [38]
    assert [sample.value for sample in samples["numalloc_process_nodes"]] == [2]


def test_each_scrape_is_new_and_processes_that_ended_are_not_in_it(tmp_path):
    named = tmp_path / f"{os.getpid()}-comes-and-goes"
    named.symlink_to(os.path.realpath("/bin/sleep"))
    with exporting("--name", f"{os.getpid()}-comes-*") as (_, address):
        assert scraped(address)["numalloc_processes"][0].value == 0
        process = subprocess.Popen([str(named), str(2 * LIMIT)])
        try:
            assert scraped(address)["numalloc_process_node_own_bytes"][0].labels["pid"] == str(process.pid)
        finally:
            process.kill()
            process.wait(timeout=LIMIT)
        assert "numalloc_process_node_own_bytes" not in scraped(address)


@pytest.mark.full("looks at every process of the machine")
def test_own_processes_without_a_choice():
    with program(1) as process, exporting() as (_, address):
        pids = {sample.labels["pid"] for sample in scraped(address)["numalloc_process_anonymous_bytes"]}
    assert str(process.pid) in pids


def test_it_ends_with_the_processes_that_were_named():
    with program() as process, exporting("--pid", process.pid) as (exporter, _):
        process.kill()
        process.wait(timeout=LIMIT)
        assert exporter.wait(timeout=LIMIT) == 0
        assert exporter.stderr.read() == "numalloc exporter: all processes have ended\n"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_it_silently(number, status):
    with exporting() as (exporter, address):
        exporter.send_signal(number)
        assert exporter.wait(timeout=LIMIT) == status
        assert exporter.stderr.read() == ""
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(address, timeout=LIMIT)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--port", "65536"], "--port: 65536 is not a port; accepted: 0 to 65535"),
        (["--pid", "x"], "--pid: 'x' is not a process"),
        (["--pid", "2147483646"], "process 2147483646 does not exist"),
        (["--address", "192.0.2.1", "--port", "0"], "cannot listen on 192.0.2.1"),
        (["--address", ""], "--address: '' is not an address; accepted: "),
        (["--address", "no.such.name.invalid"], "cannot listen on no.such.name.invalid"),
    ],
)
def test_errors_are_one_line_and_status_2(arguments, named):
    done = numalloc("exporter", *arguments)
    assert done.returncode == 2
    assert named in done.stderr
    assert done.stderr.count("\n") == 1


def test_taken_port_is_one_line():
    with exporting() as (_, address):
        done = numalloc("exporter", "--port", address.split(":")[-1].removesuffix("/metrics"))
    assert done.returncode == 2
    assert "Address already in use" in done.stderr
    assert done.stderr.count("\n") == 1


def test_every_counter_is_in_the_librarys_table():
    for kind, names in statistics_table.COUNTERS.items():
        assert names <= statistics_table.statistics(kind).keys()


@pytest.mark.full("needs IPv6")
def test_address_of_ip_version_6_can_be_followed():
    with program() as process, exporting("--pid", process.pid, "--address", "::1") as (_, address):
        assert address.startswith("http://[::1]:")
        assert scraped(address)["numalloc_processes"][0].value == 1


@pytest.mark.full("18 seconds: the exporter's own patience")
def test_silent_clients_time_out():
    """Each of them holds a thread. Others are served meanwhile, and those that go away are not complained of."""
    with program() as process, exporting("--pid", process.pid) as (exporter, address):
        port = int(address.split(":")[-1].removesuffix("/metrics"))
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
        for one in silent[25:]:
            one.send(b"GET /metrics HTTP/1.1\r\n")
        assert scraped(address)["numalloc_processes"][0].value == 1
        wait_until(lambda: psutil.Process(exporter.pid).num_threads() <= 2, "it waits for them for ever")
        for one in silent:
            one.close()
        exporter.terminate()
        exporter.wait(timeout=LIMIT)
        assert exporter.stderr.read() == ""


@pytest.mark.full("the network, where Prometheus is not installed")
def test_names_are_valid_for_prometheus(tmp_path):
    """With every statistic of the library's table, by Prometheus's own checker of names and units."""
    kinds = (statistics_table.NODE, statistics_table.CLASS, statistics_table.PROCESS)
    names = tuple(list(statistics_table.statistics(kind)) for kind in kinds)
    ones = [[1] * len(part) for part in names]
    with program() as process:
        whole = {"nodes": {0: ones[0]}, "classes": [(0, 64, ones[1])], "process": ones[2]}
        page = WrittenPage(process.pid, start_of(process.pid), names=names, **whole)
        with page.written(), exporting("--pid", process.pid) as (_, address):
            text = urllib.request.urlopen(address, timeout=LIMIT).read()
    assert b"numalloc_process_refused_moves_calls_total{" in text and b"numalloc_class_bags{" in text
    done = subprocess.run([prometheus("promtool"), "check", "metrics"], input=text, capture_output=True, timeout=LIMIT)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def prometheus(program: str = "prometheus") -> str:
    """Debian's: installed, or unpacked into the cache, which starts no server."""
    try:
        return shutil.which(program) or str(packages.unpacked("prometheus") / "usr/bin" / program)
    except Problem as problem:
        pytest.skip(str(problem))


@pytest.mark.full("the network, where Prometheus is not installed")
def test_prometheus_scrapes_it(tmp_path):
    server = prometheus()
    with program(64) as process, WrittenPage(process.pid, start_of(process.pid)).written():
        with exporting("--pid", process.pid) as (_, address):
            config = tmp_path / "prometheus.yml"
            config.write_text(
                "scrape_configs:\n  - job_name: numalloc\n    scrape_interval: 1s\n    static_configs:\n"
                f"      - targets: ['{address.removeprefix('http://').removesuffix('/metrics')}']\n"
            )
            with asked(server, config, tmp_path) as ask:
                held = ask(f"sum by (pid) (numalloc_process_node_own_bytes{{pid='{process.pid}'}})")
                live = ask("numalloc_class_live_objects{class='64'}")
                assert ask("up{job='numalloc'}")[0]["value"][1] == "1"
    assert 64 * MIB < float(held[0]["value"][1]) < 110 * MIB
    assert live[0]["value"][1] == "64"


@contextlib.contextmanager
def asked(server: str, config: Path, folder: Path):
    """A Prometheus of our own; what it is asked is answered as soon as it has something to say."""
    log = folder / "log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [server, f"--config.file={config}", f"--storage.tsdb.path={folder}/data", "--web.listen-address=127.0.0.1:0"],
            stdout=output,
            stderr=output,
            cwd=folder,
        )

    def ask(query: str) -> list[dict]:
        deadline = time.monotonic() + 60
        while True:
            try:
                url = f"http://{listening(process.pid)}/api/v1/query?query={urllib.parse.quote(query)}"
                found = json.load(urllib.request.urlopen(url, timeout=LIMIT))["data"]["result"]
            except (OSError, StopIteration):
                found = []
            if found:
                return found
            assert time.monotonic() < deadline and process.poll() is None, log.read_text()[-3000:]
            time.sleep(0.3)

    try:
        yield ask
    finally:
        process.kill()
        process.wait(timeout=LIMIT)


def listening(pid: int) -> str:
    """The address on which the process listens, which chose its port itself."""
    found = next(one for one in psutil.Process(pid).net_connections("tcp") if one.status == psutil.CONN_LISTEN)
    return f"127.0.0.1:{found.laddr.port}"
