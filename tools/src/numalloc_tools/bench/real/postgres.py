"""PostgreSQL under pgbench. It refuses to run as root, so there it runs as Debian's user for it."""

import os
import pwd
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path

from numalloc_tools.bench.allocators import Allocator
from numalloc_tools.bench.launch import Ended
from numalloc_tools.bench.programs import Work
from numalloc_tools.bench.real.server import LoadFailed, answer, served, temporary_folder

NAME, FAMILY, THREADS, QUICK = "postgres", "databases", (1, 4, 8), False
DESCRIPTION = "PostgreSQL under pgbench with that many clients; the sums of accounts, tellers and branches must agree. Peak: of the largest of its processes"
NEEDS = {"postgres": "postgresql", "initdb": "postgresql", "pgbench": "postgresql-contrib", "setpriv": "util-linux"}
_TRANSACTIONS = 2000
_USER = "postgres"
_BALANCED = (
    "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(tbalance) FROM pgbench_tellers)"
    " AND (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(bbalance) FROM pgbench_branches)"
    " AND (SELECT count(*) FROM pgbench_history) = {transactions}"
)


def found(command: str) -> str | None:
    """Debian keeps the server's programs out of the PATH, a folder for each version."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(command) or next((str(folder / command) for folder in folders if (folder / command).exists()), None)


def _as_user(words: list[str]) -> list[str]:
    if os.getuid() != 0:
        return words
    return ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups", *words]


def _for_user(allocator: Allocator, folder: Path) -> Allocator:
    """Another user cannot read what lies in the home of root: the libraries come along."""
    os.chown(folder, pwd.getpwnam(_USER).pw_uid, -1)
    libraries = tuple(Path(shutil.copy(library, folder)) for library in allocator.libraries)
    return replace(allocator, libraries=libraries)


def run(allocator: Allocator, work: Work) -> Ended:
    with temporary_folder() as name:
        if os.getuid() == 0:
            allocator = _for_user(allocator, Path(name))
        data = str(Path(name, "data"))
        try:
            answer(_as_user([found("initdb"), "-D", data, "-A", "trust", "-U", "bench", "--no-sync", "--locale=C.UTF-8"]))
        except LoadFailed as reason:
            return Ended({}, status="failed", reason=str(reason))
        client = ["-h", name, "-U", "bench"]

        def ready() -> bool:
            try:
                answer(["psql", *client, "-d", "postgres", "-c", "SELECT 1"])
            except LoadFailed:
                return False
            return True

        def load() -> tuple[int, float]:
            answer(["pgbench", *client, "-i", "-q", "-s", "2", "postgres"])
            each = max(20, round(_TRANSACTIONS * work.scale) // work.threads)
            words = ["-n", "-c", work.threads, "-j", min(2, work.threads), "-t", each, f"--random-seed={work.seed}", "postgres"]
            text = answer(["pgbench", *client, *map(str, words)], work.limit)
            rate = re.search(r"tps = ([\d.]+) \(without", text)
            if not rate:
                raise LoadFailed("pgbench measured nothing")
            done = each * work.threads
            if answer(["psql", *client, "-d", "postgres", "-Atc", _BALANCED.format(transactions=done)]).strip() != "t":
                raise LoadFailed("the database does not add up")
            return done, done / float(rate[1])

        words = [found("postgres"), "-D", data, "-k", name, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "synchronous_commit=off"]
        return served(
            _as_user(words), allocator, work, Path(name), ready, load, None, lambda running: running.ask_to_end(signal.SIGINT)
        )
