"""The machines that are modelled: distances and routes by hand, presets that are whole, bad files in one line."""

import pytest
from numalloc_tools.problem import Problem

from research.scope import hardware


def machine(tmp_path, *changes: tuple[str, str]) -> hardware.Hardware:
    text = hardware.text_of("xeon-8x16")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return hardware.read(path)


@pytest.mark.parametrize("name", hardware.PRESETS)
def test_every_preset_says_where_its_figures_are_from(name):
    found = hardware.named(name)
    assert found.name == name and found.nodes >= 2 and found.cpus_per_package % found.nodes_per_package == 0
    told = " ".join([*found.sources, *found.assumed])
    for word in ("clock_ghz", "shape", "distances", "caches", "tlb", "latency", "bandwidth", "core"):
        assert word in told
    for size, ways in found.caches.values():
        assert size % (ways * found.line) == 0
    assert found.latency["l2"] < found.latency["llc"] < found.latency["memory"] < found.latency["memory_hops"][0]


def test_the_paper_s_machine_has_one_and_two_hops():
    paper = hardware.named("xeon-8x16")
    assert paper.distance_matrix()[1] == [21, 10, 21, 21, 31, 21, 31, 31]
    assert paper.by_distance("memory", 1, 5) == 189 and paper.by_distance("memory", 1, 6) == 279
    assert paper.by_distance("transfer", 1, 1) == 60
    assert paper.routes(1, 6) == [[(1, 2), (2, 6)], [(1, 5), (5, 6)]]
    assert len(paper.pairs) == 2 * (6 + 6 + 4)


def test_chiplets_and_nodes_of_a_package():
    epyc = hardware.named("epyc-2x96")
    assert (epyc.nodes, epyc.cpus_per_node, epyc.llcs_per_node) == (8, 24, 3)
    assert epyc.distance_matrix()[2] == [12, 12, 10, 12, 32, 32, 32, 32]
    one = epyc.resized(None, 1)
    assert (one.nodes, one.cpus_per_node, one.llcs_per_node) == (2, 96, 12)
    assert epyc.resized(4, 2).distance_matrix()[0] == [10, 12, 32, 32]


def test_a_row_gets_farther_than_the_list_of_hops(tmp_path):
    row = machine(tmp_path, ('links = "halves"', 'links = "row"')).resized(5, None)
    assert [row.distance(0, node) for node in range(5)] == [10, 21, 31, 41, 51]
    assert row.by_distance("memory", 4, 0) == 279 + 2 * 90


def test_links_one_by_one(tmp_path):
    ring = machine(tmp_path, ("packages = 8", "packages = 4"), ('"halves"', "[[0, 1], [1, 2], [2, 3], [3, 0]]"))
    assert [ring.hops(0, package) for package in range(1, 4)] == [1, 2, 1]
    assert ring.routes(0, 2) == [[(0, 1), (1, 2)], [(0, 3), (3, 2)]]
    with pytest.raises(Problem, match="--nodes: mine names its links one by one, for 4 nodes"):
        ring.resized(8, None)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([("clock_ghz = 2.0", "clock_ghz = 0")], "clock_ghz is not a number above 0"),
        ([("clock_ghz = 2.0", "clock_ghz = inf")], "clock_ghz is not a number above 0"),
        ([("memory_hops = [189.0, 279.0]", "memory_hops = [189.0, nan]")], "latency.memory_hops is not a list of numbers"),
        ([("packages = 8", "packages = 0.5")], "shape.packages is not a whole number"),
        ([("ways = 11", "ways = 5.5")], "caches.llc.ways is not a whole number"),
        ([("packages = 8", "packages = 80")], "80 nodes are more than 32"),
        ([("llc = 35.0", "")], "latency.llc is not a number above 0"),
        ([("[bandwidth]", "[width]")], "the table [bandwidth] is missing"),
        ([("memory_hops = [189.0, 279.0]", "memory_hops = 189.0")], "latency.memory_hops is not a list of numbers"),
        ([('links = "halves"', 'links = "star"')], "shape.links is neither all, halves, row"),
        ([('links = "halves"', "links = [[0, 8]]")], "shape.links is neither all, halves, row"),
        ([('links = "halves"', "links = [[0, 1]]")], "no link leads from package 0 to 2"),
        ([("ways = 11", "ways = 13")], "caches.llc: 23068672 bytes in 13 ways leave a rest"),
        ([("l2 = { entries = 1536, ways = 12 }", "")], "tlb.l2 is missing"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, changes, said):
    with pytest.raises(Problem) as caught:
        machine(tmp_path, *changes)
    assert said in str(caught.value) and "accepted: " in str(caught.value) and "\n" not in str(caught.value)


def test_wrong_names_and_numbers(tmp_path):
    with pytest.raises(Problem, match="--preset: 'vax' is unknown; accepted: epyc-2x96, grace-2x72, "):
        hardware.named("vax")
    with pytest.raises(Problem, match="--machine: .*absent.toml cannot be read"):
        hardware.read(tmp_path / "absent.toml")
    with pytest.raises(Problem, match="--nodes: 6 is no whole number of packages of 4 nodes"):
        hardware.named("epyc-2x96").resized(6, None)
    with pytest.raises(Problem, match="--nodes-per-package: 5 does not divide"):
        hardware.named("epyc-2x96").resized(None, 5)
