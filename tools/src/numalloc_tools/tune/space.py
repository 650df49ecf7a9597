"""The search space: the values of each lever, and the order in which levers are tried."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from numalloc_tools.allocators import OURS
from numalloc_tools.launch import Setting
from numalloc_tools.launch.setting import AUTONUMA, DEFAULT, HUGE_PAGES, OWN_FLAGS, THREADS
from numalloc_tools.machine.words import printable
from numalloc_tools.options_table import option, options
from numalloc_tools.problem import Problem
from numalloc_tools.toml_file import content_of
from numalloc_tools.tune.search import Stage

MOST_IN_GRID = 200
LEVERS = ("threads", "memory", "huge_pages", "autonuma")
_PLACEMENT = ("threads", "memory", "autonuma")  # one node has no choice
_SUCH = 'with lines such as threads = ["default", "sparse"]'
# The allocators' own defaults: trying them and "default" would run the same thing twice.
_ANYWAY = {("threads", OURS): "sparse", ("threads", ""): "none"}
_OPTIONS: dict[str, tuple[str, ...]] = {"purge_delay": ("0", "-1")}
_OPTIONS_OF_NODES: dict[str, tuple[str, ...]] = {"interleave": ("serial",), "memory_binding": ("none",)}


@dataclass(frozen=True)
class Space:
    """Stages before a lever's own use the lever's first value."""

    allocators: tuple[str, ...]
    threads: tuple[str, ...] = (DEFAULT,)
    memory: tuple[str, ...] = (DEFAULT,)
    huge_pages: tuple[str, ...] = (DEFAULT,)
    autonuma: tuple[str, ...] = (DEFAULT,)
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of numalloc; the defaults come first
    fixed: dict[str, str] = field(default_factory=dict)  # options that are always set

    def as_data(self) -> dict:
        lists = {name: list(getattr(self, name)) for name in ("allocators", *LEVERS)}
        return lists | {"options": {name: list(values) for name, values in self.options.items()}, "fixed": dict(self.fixed)}


def usual(allocators: Sequence[str], nodes: int, autonuma: bool = False, policy: bool = False) -> Space:
    """The values worth trying on a machine with this number of nodes. `policy`: the parent has set a memory policy."""
    several = nodes > 1
    memory = (DEFAULT, "interleave", *(["local"] if policy else []))
    return Space(
        tuple(allocators),
        THREADS if several else (DEFAULT,),
        memory if several else (DEFAULT,),
        HUGE_PAGES,
        AUTONUMA if several and autonuma else (DEFAULT,),
        _OPTIONS | (_OPTIONS_OF_NODES if several else {}),
    )


def from_file(path: Path, otherwise: Space) -> Space:
    """Each lever in the file has exactly the file's values."""
    content = content_of(path, "--space", f"a TOML file {_SUCH}")
    where = f"--space: {path}: "
    changes: dict = {}
    for name, values in content.items():
        key = name.replace("-", "_")
        if key == "options" and isinstance(values, dict):
            changes[key] = {option(one).name: _texts(where + printable(one), some) for one, some in values.items()}
        elif key in ("allocators", *LEVERS):
            changes[key] = _texts(where + name, values)
        else:
            raise Problem(f"{where}'{printable(name)}' is unknown; accepted: allocators, {', '.join(LEVERS)} and a table [options]")
    return checked(replace(otherwise, **changes), where)


def _texts(where: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not values or not all(isinstance(value, str | int) for value in values):
        raise Problem(f'{where}: {values!r} is not understood; accepted: a list of values such as ["default", "sparse"]')
    return tuple(dict.fromkeys(str(int(value)) if isinstance(value, bool) else str(value) for value in values))


def with_fixed(space: Space, text: str) -> Space:
    name, equals, value = text.partition("=")
    key = name.replace("-", "_")
    accepted = [*LEVERS, *(one.name for one in options() if one.name not in OWN_FLAGS)]
    if key not in accepted or not value:
        raise Problem(f"--fix: '{text}' is not understood; accepted: NAME=VALUE with one of {', '.join(accepted)}")
    if key in LEVERS:
        lever: Any = {key: (value,)}
        return checked(replace(space, **lever), "--fix: ")
    others = {one: values for one, values in space.options.items() if one != key}
    return checked(replace(space, options=others, fixed=space.fixed | {key: value}), "--fix: ")


def checked(space: Space, where: str) -> Space:
    try:
        for lever in LEVERS:
            for value in getattr(space, lever):
                Setting(**{lever: value})
        for name, values in (*space.options.items(), *((name, (value,)) for name, value in space.fixed.items())):
            for value in values:
                Setting(options=((name, value),))
    except Problem as problem:
        raise Problem(f"{where}{printable(str(problem))}") from None
    return space


def is_ours(allocator: str) -> bool:
    return allocator == OURS or Path(allocator).name.startswith(f"lib{OURS}")


def first(space: Space, allocator: str) -> Setting:
    """The setting from which an allocator starts: all levers have their first values."""
    fields = {lever: getattr(space, lever)[0] for lever in LEVERS}
    return Setting(allocator, **fields, options=tuple(sorted(space.fixed.items())) if is_ours(allocator) else ())


def stages(space: Space) -> list[Stage]:
    several = len(space.threads) * len(space.memory) > 1
    found = [Stage("allocators", lambda leaders: [first(space, name) for name in space.allocators], 2 if several else 1)]
    if several:
        found.append(Stage("placement", _levers(space, "threads", "memory")))
    if len(space.autonuma) > 1:
        found.append(Stage("AutoNUMA", _levers(space, "autonuma")))
    if len(space.huge_pages) > 1:
        found.append(Stage("huge pages", _levers(space, "huge_pages")))
    if space.options:
        ours = lambda setting: is_ours(setting.allocator)  # noqa: E731
        found += [Stage("options", _one_option(space), 2, ours), Stage("options together", _together)]
    return found


def grid(space: Space) -> list[Stage]:
    """All combinations at once, for users with enough time."""
    settings = []
    for name in space.allocators:
        leaders = [first(space, name)]
        for lever in LEVERS:
            leaders += _levers(space, lever)(leaders)
        if is_ours(name):
            for one, values in space.options.items():
                leaders += [_with(leader, one, value) for leader in leaders for value in values]
        settings += leaders
    if len(settings) > MOST_IN_GRID:
        raise Problem(f"--grid: {len(settings)} settings; accepted: up to {MOST_IN_GRID}, by --allocators, --fix or --space")
    return [Stage("all settings", lambda leaders: settings)]


def _levers(space: Space, *levers: str) -> Callable[[Sequence[Setting]], list[Setting]]:
    def vary(leaders: Sequence[Setting]) -> list[Setting]:
        found = []
        for leader in leaders:
            values = [_values(space, lever, leader.allocator) for lever in levers]
            for some in itertools.product(*values):
                change: Any = dict(zip(levers, some, strict=True))
                found.append(replace(leader, **change))
        return [setting for setting in dict.fromkeys(found) if setting not in leaders]

    return vary


def _values(space: Space, lever: str, allocator: str) -> list[str]:
    values = getattr(space, lever)
    anyway = (lever, OURS if is_ours(allocator) else "")
    return [value for value in values if DEFAULT not in values or _ANYWAY.get(anyway) != value]


def _one_option(space: Space) -> Callable[[Sequence[Setting]], list[Setting]]:
    def vary(leaders: Sequence[Setting]) -> list[Setting]:
        ours = [leader for leader in leaders if is_ours(leader.allocator)]
        return [_with(leader, name, value) for leader in ours for name, values in space.options.items() for value in values]

    return vary


def _with(setting: Setting, name: str, value: str) -> Setting:
    return replace(setting, options=tuple(sorted({**dict(setting.options), name: value}.items())))


def _together(leaders: Sequence[Setting]) -> list[Setting]:
    """Combines the two best options."""
    if len(leaders) < 2 or replace(leaders[0], options=()) != replace(leaders[1], options=()):
        return []
    both = {**dict(leaders[1].options), **dict(leaders[0].options)}
    return [setting for setting in [replace(leaders[0], options=tuple(sorted(both.items())))] if setting not in leaders]
