"""The machine that is modelled: its shape, caches, latencies and bandwidths, from a TOML file of ours or the user's."""

from dataclasses import dataclass, field, fields, replace
from functools import cache, cached_property
from math import inf
from pathlib import Path
from typing import TypeGuard

from numalloc_tools.guest.machine import MAX_NODES
from numalloc_tools.problem import Problem
from numalloc_tools.toml_file import content_of

_LINE = 64  # bytes, of every cache that is counted
_FOLDER = Path(__file__).with_name("presets")
PRESETS = tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))
STANDARD = "xeon-8x16"
PATTERNS = ("all", "halves", "row")
CACHES, TLBS = ("l1", "l2", "llc"), ("l1_4k", "l1_2m", "l2")
_ACCEPTED = "a machine such as research scope --show-preset prints"
_SECTIONS = {
    "shape": ("packages", "nodes_per_package", "cpus_per_package", "llcs_per_package"),
    "distances": ("same_package",),
    "latency": (
        "l2",
        "llc",
        "memory",
        "memory_same_package",
        "transfer",
        "transfer_same_package",
        "tlb_l2",
    ),
    "bandwidth": ("memory_per_package", "link"),
    "core": ("cpi", "parallelism", "transfer_parallelism", "walk_misses"),
}
_LISTS = (("distances", "hops"), ("latency", "memory_hops"), ("latency", "transfer_hops"))


@dataclass(frozen=True)
class Hardware:
    """Latencies in nanoseconds, bandwidths in bytes a nanosecond, which is 10^9 bytes a second."""

    name: str
    title: str
    clock_ghz: float
    packages: int
    nodes_per_package: int
    cpus_per_package: int
    llcs_per_package: int
    links: str | tuple[tuple[int, int], ...]  # between packages
    caches: dict[str, tuple[int, int]]  # bytes, ways
    tlbs: dict[str, tuple[int, int]]  # entries, ways
    latency: dict  # of what is near; a list where it goes by hops
    distances: dict
    memory_per_package: float
    link: float
    cpi: float
    parallelism: float
    transfer_parallelism: float
    walk_misses: float  # the share of page tables' lines that come from memory
    sources: dict[str, str] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)

    @property
    def line(self) -> int:
        return _LINE

    @property
    def nodes(self) -> int:
        return self.packages * self.nodes_per_package

    @property
    def cpus_per_node(self) -> int:
        return self.cpus_per_package // self.nodes_per_package

    @property
    def llcs_per_node(self) -> int:
        return max(1, self.llcs_per_package // self.nodes_per_package)

    def package_of(self, node: int) -> int:
        return node // self.nodes_per_package

    @cached_property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """Packages with a link between them, in both directions."""
        n = self.packages
        if not isinstance(self.links, str):
            found = list(self.links)
        elif self.links == "all":
            found = [(a, b) for a in range(n) for b in range(a)]
        elif self.links == "halves":
            half = (n + 1) // 2
            found = [(a, b) for a in range(n) for b in range(a) if (a < half) == (b < half) or a - b == half]
        else:  # "row"
            found = [(a + 1, a) for a in range(n - 1)]
        return frozenset([*found, *((b, a) for a, b in found)])

    def routes(self, source: int, target: int) -> list[list[tuple[int, int]]]:
        """The shortest ways between two packages, each as the links it takes."""
        return _routes(self.pairs, self.packages, source, target)

    def hops(self, source: int, target: int) -> int:
        return len(self.routes(source, target)[0])

    def by_distance(self, what: str, source: int, target: int) -> float:
        """memory or transfer, between two nodes."""
        if source == target:
            return self.latency[what]
        a, b = self.package_of(source), self.package_of(target)
        return self.latency[f"{what}_same_package"] if a == b else _at(self.latency[f"{what}_hops"], self.hops(a, b))

    def distance(self, source: int, target: int) -> int:
        """As the firmware says it: 10 is home."""
        if source == target:
            return 10
        a, b = self.package_of(source), self.package_of(target)
        return int(self.distances["same_package"] if a == b else _at(self.distances["hops"], self.hops(a, b)))

    def distance_matrix(self) -> list[list[int]]:
        return [[self.distance(i, j) for j in range(self.nodes)] for i in range(self.nodes)]

    def with_memory_times(self, factor: float) -> "Hardware":
        """The latencies of memory and other caches times `factor`: what the model says must not hang on one guess of them."""
        changed = {
            name: [one * factor for one in value] if isinstance(value, list) else value * factor
            for name, value in self.latency.items()
            if name.startswith(("memory", "transfer"))
        }
        return replace(self, latency=self.latency | changed)

    def resized(self, nodes: int | None, nodes_per_package: int | None) -> "Hardware":
        found = self
        if nodes_per_package is not None:
            if nodes_per_package < 1 or self.llcs_per_package % nodes_per_package and nodes_per_package % self.llcs_per_package:
                raise Problem(
                    f"--nodes-per-package: {nodes_per_package} does not divide a package's {self.llcs_per_package} last-level caches"
                )
            found = replace(found, nodes_per_package=nodes_per_package)
        if nodes is not None and nodes != found.nodes:
            if nodes % found.nodes_per_package or nodes < 2:
                raise Problem(
                    f"--nodes: {nodes} is no whole number of packages of {found.nodes_per_package} nodes; "
                    "accepted: a multiple of that, 2 or more"
                )
            if not isinstance(found.links, str):
                raise Problem(f"--nodes: {found.name} names its links one by one, for {found.nodes} nodes; accepted: that number")
            found = replace(found, packages=nodes // found.nodes_per_package)
        if found.nodes > MAX_NODES:  # before routes are sought, which takes minutes for hundreds
            raise Problem(f"--nodes: {found.nodes} are too many; accepted: up to {MAX_NODES}")
        return found

    def as_json(self) -> dict:
        shown = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("sources", "assumed")}
        return shown | {"nodes": self.nodes}


def _at(values: list[float], hops: int) -> float:
    """Farther than the list goes costs as much again as its last step, or as the first where there is one only."""
    if hops <= len(values):
        return values[hops - 1]
    step = values[-1] - values[-2] if len(values) > 1 else values[0] / 2
    return values[-1] + step * (hops - len(values))


@cache
def _routes(pairs: frozenset, packages: int, source: int, target: int) -> list[list[tuple[int, int]]]:
    ways: list[tuple[int, ...]] = [(source,)]  # as the packages that are passed
    for _ in range(packages):
        if found := [way for way in ways if way[-1] == target]:
            return [list(zip(way, way[1:])) for way in found]
        seen = {package for way in ways for package in way}
        ways = [(*way, b) for way in ways for a, b in sorted(pairs) if a == way[-1] and b not in seen]
    raise Problem(f"--machine: no link leads from package {source} to {target}; accepted: links that reach every package")


def named(name: str) -> Hardware:
    if name not in PRESETS:
        raise Problem(f"--preset: '{name}' is unknown; accepted: {', '.join(PRESETS)}")
    return read(_FOLDER / f"{name}.toml", "--preset")


def text_of(name: str) -> str:
    named(name)
    return (_FOLDER / f"{name}.toml").read_text()


def read(path: Path, flag: str = "--machine") -> Hardware:
    content = content_of(path, flag, _ACCEPTED)

    def wrong(what: str) -> Problem:
        return Problem(f"{flag}: {path}: {what}; accepted: {_ACCEPTED}")

    def number(section: dict, place: str, name: str) -> float:
        value = section.get(name)
        if not _is_number(value):
            raise wrong(f"{place}{name} is not a number above 0")
        return value

    def whole(section: dict, place: str, name: str) -> int:
        value = number(section, place, name)
        if value != int(value):
            raise wrong(f"{place}{name} is not a whole number")
        return int(value)

    def table(section: str, names: tuple[str, ...], first: str, unit: int = 1) -> dict[str, tuple[int, int]]:
        found = {}
        for name in names:
            entry = given.get(name) if isinstance(given := content.get(section), dict) else None
            if not isinstance(entry, dict):
                raise wrong(f"{section}.{name} is missing")
            size, ways = (whole(entry, f"{section}.{name}.", one) for one in (first, "ways"))
            if size % (ways * unit):
                raise wrong(f"{section}.{name}: {size} {first} in {ways} ways leave a rest")
            found[name] = (size, ways)
        return found

    values: dict = {}
    for section, names in _SECTIONS.items():
        if not isinstance(content.get(section), dict):
            raise wrong(f"the table [{section}] is missing")
        values[section] = {name: number(content[section], f"{section}.", name) for name in names}
    for section, name in _LISTS:
        steps = content[section].get(name)
        if not isinstance(steps, list) or not steps or not all(map(_is_number, steps)):
            raise wrong(f"{section}.{name} is not a list of numbers, one for each hop")
        values[section][name] = steps
    shape = {name: whole(values["shape"], "shape.", name) for name in values["shape"]}
    if (nodes := shape["packages"] * shape["nodes_per_package"]) > MAX_NODES:
        raise wrong(f"{nodes} nodes are more than {MAX_NODES}")
    found = Hardware(
        name=path.stem,
        title=str(content.get("title", path.stem)),
        clock_ghz=number(content, "", "clock_ghz"),
        **shape,
        links=_links(content["shape"].get("links"), shape["packages"], wrong),
        caches=table("caches", CACHES, "bytes", _LINE),
        tlbs=table("tlb", TLBS, "entries"),
        latency=values["latency"],
        distances=values["distances"],
        **values["bandwidth"],
        **values["core"],
        sources=content.get("sources", {}),
        assumed=content.get("assumed", {}),
    )
    for node in range(found.nodes):
        found.distance(0, node)  # reaches every package
    return found


def _is_number(value) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < inf


def _links(given, packages: int, wrong) -> str | tuple[tuple[int, int], ...]:
    if isinstance(given, str) and given in PATTERNS:
        return given
    pairs = given if isinstance(given, list) else []
    good = all(isinstance(one, list) and len(one) == 2 and set(one) <= set(range(packages)) and one[0] != one[1] for one in pairs)
    if not pairs or not good:
        raise wrong(f"shape.links is neither {', '.join(PATTERNS)} nor a list of pairs of packages such as [[0, 1], [1, 2]]")
    return tuple((a, b) for a, b in pairs)
