"""The table of options as the tools read it, beside the library's own sources and the library itself."""

import re
import subprocess
from pathlib import Path

import pytest
from limits import LIMIT
from numalloc_tools import options_table
from numalloc_tools.allocators.found import our_library

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = str(our_library())
VALUES = [
    "interleave",
    "saturate",
    "file",
    "none",
    "local",
    "preferred",
    "strict",
    "off",
    "on",
    "auto",
    "system",
    "serial",
    "all",
    "share",
    "drop",
    "keep",
    "yes",
    "no",
    "0",
    "1",
    "2",
    "-1",
    "-2",
    "007",
    "1000000000",
    "1000000001",
    "2147483647",
    "2147483s",
    "2147484s",
    "5ms",
    "5s",
    "5 s",
    "5m",
    "64K",
    "64k",
    "64KB",
    "64KiB",
    "64Kb",
    "64B",
    "8G",
    "16777215T",
    "16777216T",
    "18446744073709551615",
    "18446744073709551616",
    "x",
    "/tmp",
    "preferred:0",
    "preferred:1023",
    "preferred:1024",
    "preferred:",
    "preferred:0-1",
    "bind:0",
    "bind:0-3,8",
    "bind:3-0",
    "bind:1023",
    "bind:1024",
    "bind:0,",
    "bind:",
    "bind: 0",
    "local ",
    "locally",
    "interleave:0",
    "Interleave",
    "\u00b2",
    "\u0663",
    "USR1",
    "SIGUSR1",
    "SIGSIGUSR1",
    "KILL",
    "9",
    "19",
    "64",
    "65",
    "01",
    "PROF",
    "SIG",
]


def test_kinds_accept_the_same_words_as_the_sources():
    source = (ROOT / "src/options/options.h").read_text()
    kinds = dict(re.findall(r'KIND\((\w+), [^,]+?, "([^"]*)"\)', source))
    assert {kind: words for kind, (words, _) in options_table.KINDS.items()} == kinds


def test_every_line_of_the_table_is_read():
    table = (ROOT / "include/numalloc/options.def").read_text()
    found = options_table.parsed(table)
    assert len(found) == len(re.findall(r"^NUMALLOC_(?:LIVE_|EXPERIMENT_)?OPTION\(", table, re.MULTILINE)) >= 14
    assert {*options_table.options(), *options_table.experiments()} == set(found)
    assert [one for one in found if one.experiment] and not [one for one in options_table.options() if one.experiment]
    for one in found:
        assert one.check(one.default) == one.default
        assert len(one.text) > 30 and '"' not in one.text


def test_options_of_a_newer_table():
    """A kind that the tools do not know is the library's to judge; names that commands have taken have another flag."""
    table = 'NUMALLOC_OPTION(profile, Sampling, off,\n    "one \\"text\\" "\n    "in two parts")\n'
    (found,) = options_table.parsed(table)
    assert (found.flag, found.variable, found.text) == ("--heap-profile", "NUMALLOC_PROFILE", 'one "text" in two parts')
    assert found.check("64K") == "64K"


@pytest.mark.parametrize("value", VALUES)
def test_tools_and_library_agree_on_each_value(value, tmp_path):
    """The library is preloaded into a real program with every option set to the value, and says which it refuses. Files
    that a value may name are made in a folder of their own."""
    variables = {one.variable: value for one in options_table.options()}
    environment = {**variables, "PATH": "/usr/bin:/bin", "LD_PRELOAD": LIBRARY}
    done = subprocess.run(["ls", "/dev/null"], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT)
    refused = {one.name for one in options_table.options() if f"{one.variable}={value} is not understood" in done.stderr}
    assert refused == {one.name for one in options_table.options() if not options_table.KINDS[one.kind][1](value)}
