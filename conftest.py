"""Which Python tests run, and what they inherit from whoever started them.

The verdict of a test of the gate depends on the tree alone. A test whose verdict also depends on time, the network, a
terminal or other processes is marked `full`, with the reason: it is deselected unless NUMALLOC_TEST_FULL=1, or unless the
command line names its file or the test itself.
"""

import contextlib
import os
import random
import signal
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent
QUARANTINE = ROOT / "tests/quarantine.toml"
FULL = os.environ.get("NUMALLOC_TEST_FULL") == "1"
_PYTHONS_OWN = (signal.SIGPIPE, signal.SIGXFSZ)  # which Python itself ignores


def restore_signals() -> None:
    """A shell starts background processes with SIGINT and SIGQUIT ignored, nohup ignores SIGHUP, and children inherit it."""
    for number in signal.valid_signals() - {*_PYTHONS_OWN, signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) == signal.SIG_IGN:
            with contextlib.suppress(OSError):  # a real-time signal that the C library keeps for itself
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


restore_signals()
os.umask(0o022)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config) -> None:
    config.addinivalue_line("markers", "full(reason): its verdict depends on more than the tree; runs with NUMALLOC_TEST_FULL=1")
    config.addinivalue_line("markers", "xdist_group(name): with --dist loadgroup, runs in one process with the others of the group")
    try:
        from hypothesis import settings
    except ImportError:
        return
    settings.register_profile("gate", database=None, derandomize=True)
    settings.register_profile("full", database=None)
    settings.load_profile("full" if FULL else "gate")
    # xdist hands the option on to its workers.
    if FULL and getattr(config.option, "hypothesis_seed", None) is None:
        config.option.hypothesis_seed = str(random.SystemRandom().getrandbits(32))


def pytest_report_header(config) -> str | None:
    return f"full tests too; --hypothesis-seed={getattr(config.option, 'hypothesis_seed', None)}" if FULL else None


def quarantined() -> dict[str, str]:
    """The reason for each name in the file; ctest's names are among them."""
    if not QUARANTINE.is_file():
        return {}
    tests = tomllib.loads(QUARANTINE.read_text()).get("test", [])
    return {one["name"]: f"in quarantine since {one['since']}: {one['evidence']}" for one in tests}


def named_on_the_command_line(config) -> list[tuple[Path, str]]:
    """Files and tests, not folders: each as the file, and the name in it or nothing."""
    found = []
    for argument in config.args:
        file, _, name = str(argument).partition("::")
        path = Path(config.invocation_params.dir, file).resolve()
        if path.is_file():
            found.append((path, name))
    return found


def is_named(item, named: list[tuple[Path, str]]) -> bool:
    own = item.nodeid.partition("::")[2]
    return any(item.path == path and (not name or own == name or own.startswith((f"{name}[", f"{name}::"))) for path, name in named)


def pytest_runtest_setup(item) -> None:
    """The time limit goes into the JUnit file, where the gate reads it."""
    own = item.get_closest_marker("timeout")
    item.user_properties.append(("limit", own.args[0] if own else item.config.getini("timeout")))


@pytest.hookimpl(tryfirst=True)  # before xdist, which adds groups to the names
def pytest_collection_modifyitems(config, items) -> None:
    reasons = quarantined()
    for item in items:
        for name in (item.nodeid, item.nodeid.partition("[")[0]):
            if name in reasons:
                item.add_marker(pytest.mark.full(reasons[name]))
    if FULL:
        return
    named = named_on_the_command_line(config)
    left = [item for item in items if item.get_closest_marker("full") and not is_named(item, named)]
    if left:
        items[:] = [item for item in items if item not in set(left)]
        config.hook.pytest_deselected(items=left)
