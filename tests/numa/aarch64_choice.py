"""Which tests the suite runs on aarch64, and, as a command, what of build/aarch64 they need: a target a line."""

import guest_tests

BUILD = guest_tests.ROOT / "build/aarch64"

# What differs with the architecture and with the page: space, purging, moved blocks, threads, fork, first and last calls.
# Each with its program: ctest names none that is not built yet.
CHOICE = {
    "4K": {
        "unit.lock_test": "lock_test",
        "unit.remote_lists_test": "remote_lists_test",
        "survive.first_and_last": "survive_first_and_last",
        "threads.endings": "threads_endings",
    },
    "16K": {
        "unit.address_space_test": "address_space_test",
        "unit.region_test": "region_test",
        "unit.move_test": "move_test",
        "survive.first_and_last": "survive_first_and_last",
        "survive.victim": "survive_victim",
        "survive.small_stacks": "survive_small_stacks",
        "api.Move": "program_places",
        "api.Free": "program_api",
        "api.huge_pages_auto": "huge_pages",
    },
}
CHOICE["own"] = CHOICE["16K"]

if __name__ == "__main__":
    print("libnumalloc.so", *sorted({program for tests in CHOICE.values() for program in tests.values()}), sep="\n")
