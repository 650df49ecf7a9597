"""Which tests the suite runs on aarch64, and, as a command, what of build/aarch64 they need: one target a line."""

from pathlib import Path

import guest_tests

BUILD = guest_tests.ROOT / "build/aarch64"

# What differs with the architecture and with the page: space, purging, moved blocks, threads, fork, first and last calls.
CHOICE = {
    "4K": ["unit.lock_test", "unit.remote_lists_test", "survive.first_and_last", "threads.endings"],
    "16K": [
        "unit.address_space_test", "unit.region_test", "unit.pages_move_test", "survive.first_and_last", "survive.victim",
        "survive.small_stacks", "api.Move", "api.Free", "api.huge_pages_auto",
    ],
}  # fmt: skip
CHOICE["own"] = CHOICE["16K"]


def targets() -> list[str]:
    """The library and the programs that the commands name."""
    words = [word for tests in CHOICE.values() for job in guest_tests.jobs(BUILD, tests) for word in job.command]
    built = {str(Path(word).relative_to(BUILD)) for word in words if Path(word).is_relative_to(BUILD)}
    return sorted({"libnumalloc.so"} | {name for name in built if ".so" not in name})


if __name__ == "__main__":
    print(*targets(), sep="\n")
