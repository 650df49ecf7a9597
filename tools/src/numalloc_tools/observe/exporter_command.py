"""`numalloc exporter`: serves the same figures to Prometheus, over HTTP."""

import sys
import time
from typing import Annotated, Any, Optional

import typer

from numalloc_tools.machine.online import machine
from numalloc_tools.observe import keys, page
from numalloc_tools.observe.selection import Selection, pid_of
from numalloc_tools.problem import Problem

PORT = 9648
_LOOK = 0.5  # seconds between checks whether the processes still run
_PATIENCE = 10.0  # seconds until a client must have sent its request: it occupies a thread


def exporter(
    pid: Annotated[Optional[list[str]], typer.Option(help="A process to serve. Repeatable.", metavar="PID")] = None,
    name: Annotated[
        Optional[list[str]],
        typer.Option(
            help="Serve the processes with this name, including those that start later; * and ? are wildcards. Repeatable.", metavar="NAME"
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="The port to listen on; 0 chooses a free one.")] = PORT,
    address: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 means all addresses of this machine.")] = "127.0.0.1",
) -> None:
    """Serve the figures of `stat` as metrics for Prometheus (OpenMetrics), at /metrics.

    Default: all your processes. Each scrape reads them anew. The command runs until it is interrupted, or until all
    processes that were given by number have ended.
    """
    # Imported here: every other command would wait for it.
    from prometheus_client import CollectorRegistry, start_http_server

    from numalloc_tools.observe.metrics import Collector

    if not 0 <= port <= 65535:
        raise Problem(f"--port: {port} is not a port; accepted: 0 to 65535")
    if not address:
        raise Problem("--address: '' is not an address; accepted: an address such as 127.0.0.1 or ::1, or a name of this machine")
    selection = Selection(tuple(pid_of(one, "--pid") for one in pid or []), tuple(name or []), all_of_them=True)
    here = machine()
    selection.check(here)
    page.remove_stale()
    registry = CollectorRegistry()
    registry.register(Collector(selection, here))
    try:
        server, _ = start_http_server(port, address, registry)
    except OSError as error:
        raise Problem(f"--port, --address: cannot listen on {address}, port {port} ({error.strerror})") from None
    handler: Any = server.RequestHandlerClass
    server.RequestHandlerClass = type("Handler", (handler,), {"timeout": _PATIENCE})
    setattr(server, "handle_error", _said_unless_the_client_left)  # noqa: B010
    host = f"[{address}]" if ":" in address else address
    try:
        with keys.ended_in_order():
            print(f"numalloc exporter: http://{host}:{server.server_port}/metrics", file=sys.stderr, flush=True)
            while not selection.over:
                time.sleep(_LOOK)
        print("numalloc exporter: all processes have ended", file=sys.stderr)
    finally:
        server.shutdown()
        server.server_close()


def _said_unless_the_client_left(request, address) -> None:
    error = sys.exc_info()[1]
    if not isinstance(error, (TimeoutError, ConnectionError)):
        print(f"numalloc exporter: a request from {address[0]} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
