"""Whatever a file holds, its reader either reads it or says in one line what is wrong with it: no traceback."""

import json
from pathlib import Path

import pytest
import tomli_w
from any_file import any_bytes, changed, check, few
from hypothesis import given
from hypothesis import strategies as st
from numalloc_tools.toml_file import content_of

from research.bundle.command import read_bundle
from research.scope import hardware

PAPERS = {
    "machine": {"cpus": 2, "nodes": 1, "processor": "P"},
    "scale": 1.0,
    "paper": False,
    "experiments": [{"id": "none", "runs": ["a"], "troubles": [""]}],
}


def read_bundle_of(path: Path) -> None:
    folder = path.with_name("bundle")
    folder.mkdir(exist_ok=True)
    (folder / "papers.json").write_bytes(path.read_bytes())
    read_bundle(folder, folder / "out")


def read_archive(path: Path) -> None:
    archive = path.with_name("results.tar.gz")
    archive.write_bytes(path.read_bytes())
    read_bundle(archive, path.with_name("unpacked"))


READERS = {"bundle": read_bundle_of, "archive": read_archive, "hardware": hardware.read}


@pytest.mark.parametrize("name", READERS)
@any_bytes
def test_any_bytes(name, tmp_path, content):
    check(READERS[name], tmp_path, content)


@few
@given(content=changed(PAPERS))
def test_bundles_that_were_changed(tmp_path, content):
    check(read_bundle_of, tmp_path, json.dumps(content).encode())


@few
@given(data=st.data())
def test_machines_that_were_changed(tmp_path, data):
    preset = Path(hardware.__file__).parent / "presets" / f"{sorted(hardware.PRESETS)[0]}.toml"
    whole = content_of(preset, "--machine", "a preset")
    check(hardware.read, tmp_path, tomli_w.dumps(data.draw(changed(whole, with_null=False))).encode())
