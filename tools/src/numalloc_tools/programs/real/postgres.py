"""PostgreSQL under pgbench. It refuses to run as root: root starts it as Debian's user for it."""

import re
import shutil
import signal
from pathlib import Path

from numalloc_tools.allocators import Allocator
from numalloc_tools.launch.launcher import Ended
from numalloc_tools.programs import Work
from numalloc_tools.programs.real.server import LoadFailed, answer, served, temporary_folder
from numalloc_tools.programs.real.user import as_user, for_user

NAME, FAMILY, THREADS, QUICK = "postgres", "databases", (1, 4, 8), False
DESCRIPTION = "PostgreSQL under pgbench with this number of clients; the sums of accounts, tellers and branches must agree. The peak is that of its largest process"
NEEDS = {"postgres": "postgresql", "initdb": "postgresql", "pgbench": "postgresql-contrib", "setpriv": "util-linux"}
_TRANSACTIONS = 2000
_USER = "postgres"
_BALANCED = (
    "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(tbalance) FROM pgbench_tellers)"
    " AND (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(bbalance) FROM pgbench_branches)"
    " AND (SELECT count(*) FROM pgbench_history) = {transactions}"
)


def found(command: str) -> str | None:
    """Debian has the server's programs outside of PATH, in a folder per version."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return shutil.which(command) or next((str(folder / command) for folder in folders if (folder / command).exists()), None)


def run(allocator: Allocator, work: Work) -> Ended:
    with temporary_folder() as name:
        allocator = for_user(allocator, Path(name), _USER)
        data = str(Path(name, "data"))
        try:
            answer(as_user([found("initdb") or "initdb", "-D", data, "-A", "trust", "-U", "bench", "--no-sync", "--locale=C.UTF-8"], _USER))
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
                raise LoadFailed("the sums in the database do not agree")
            return done, done / float(rate[1])

        words = [
            found("postgres") or "postgres",
            "-D",
            data,
            "-k",
            name,
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
            "-c",
            "synchronous_commit=off",
        ]
        return served(
            as_user(words, _USER), allocator, work, Path(name), ready, load, None, lambda running: running.ask_to_end(signal.SIGINT)
        )
