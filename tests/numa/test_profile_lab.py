"""The heap profile on a machine of several nodes: who allocates where, and the stacks whose memory is remote."""

import re
import subprocess
from pathlib import Path

import pytest
from jobs import Jobs, passed
from numalloc_tools.profile import files, totals
from numalloc_tools.profile.names import add_names
from numalloc_tools.profile.samples import VIEWS, samples

JOBS = Jobs(nodes=4, memory_per_node="256M")
PROFILE = "/tmp/profile.pb"
KEPT, BYTES = 300, 20000
UNWINDER = subprocess.run(["gcc", "-print-file-name=libgcc_s.so.1"], capture_output=True, text=True, check=True).stdout.strip()
# A C program does not bring the unwinder. The file comes out of the machine as text, behind a line of its own.
STEPS = f'export LD_PRELOAD="$LD_PRELOAD:$1"; shift; "$@" {PROFILE} && echo PROFILE && od -An -v -tx1 {PROFILE}'
BY_HAND = ["sh", "-c", STEPS, "sh", str(Path(UNWINDER).resolve())]
JOBS.add("every", "profiled", options={"profile": "1", "profile_file": "none"}, around=BY_HAND)
JOBS.add("some", "profiled", options={"profile": "64K", "profile_file": "none"}, around=BY_HAND)


def profile_of(report, name, folder):
    text = passed(report, name).stdout
    digits = text.split("PROFILE\n", 1)[1]
    file = folder / f"{name}.pb"
    file.write_bytes(bytes.fromhex("".join(re.findall(r"\b[0-9a-f]{2}\b", digits))))
    profile = files.read(file)
    add_names(profile)
    return profile


def by_function(found) -> dict[str, dict[tuple, int]]:
    """For each of the program's functions its bytes by place: thread, pages, who freed."""
    result: dict[str, dict[tuple, int]] = {}
    for sample in found:
        name = next((name for name in sample.stack if name in ("keep_at_home", "keep_far_away", "give_away")), None)
        if name:
            places = sample.places
            key = places["node_alloc"], places["node_pages"], places.get("node_free")
            part = result.setdefault(name, {})
            part[key] = part.get(key, 0) + sample.bytes
    return result


def test_every_place_is_recorded(report, tmp_path):
    profile = profile_of(report, "every", tmp_path)
    assert by_function(samples(profile, VIEWS["allocated"])) == {
        "keep_at_home": {("0", "0", None): KEPT * BYTES},
        "keep_far_away": {("0", "1", None): KEPT * BYTES},
        "give_away": {("0", "0", "1"): KEPT * BYTES},
    }
    assert set(by_function(samples(profile, VIEWS["live"]))) == {"keep_at_home", "keep_far_away"}


@pytest.mark.parametrize("name", ["every", "some"])
def test_stacks_with_remote_memory_are_named(report, tmp_path, name):
    found = samples(profile_of(report, name, tmp_path), VIEWS["live"])
    remote = totals.remote_stacks(found)
    assert remote, "no stack is remote"
    assert all("keep_far_away" in stack for stack, _ in remote), remote
    assert 0.6 * KEPT * BYTES < sum(share.flat.bytes for _, share in remote) < 1.5 * KEPT * BYTES


def test_kernel_had_nothing_to_say(report):
    assert report.findings == []
