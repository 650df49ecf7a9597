"""From counts by address to counts by function and by party."""

import re
from collections import defaultdict
from pathlib import Path

from research.scope import elf, stacks

_MOST_SYMBOLS = 200
_DONE = ("instructions", "loads", "stores")  # as against what was missed
_ALLOCATOR = re.compile(r"^lib(numalloc(?!-binding)|jemalloc|tcmalloc|mimalloc|snmalloc|rpmalloc|tbbmalloc|hoard)")
_C_LIBRARY = re.compile(r"^libc\.so\.6$|^libc-2\.\d+\.so$")


def add(to: dict, counts: dict) -> None:
    """Numbers, lists and groups of numbers, added up in place."""
    for name, value in counts.items():
        if isinstance(value, dict):
            add(to.setdefault(name, {}), value)
        elif isinstance(value, list):
            before = to.get(name) or [0] * len(value)
            to[name] = [a + b for a, b in zip(before, value)]
        elif isinstance(value, int):
            to[name] = to.get(name, 0) + value


def zero(counts: dict) -> dict:
    """Counts of the same form, of nothing."""
    return {
        name: zero(value) if isinstance(value, dict) else [0] * len(value) if isinstance(value, list) else 0
        for name, value in counts.items()
    }


def name(raw: dict, preloaded: list[str]) -> dict:
    """The plugin's JSON with `symbols` and `parties` in place of addresses."""
    counted = {key: value for key, value in raw.items() if key not in ("code", "touched", "executed", "maps", "stacks")}
    form = zero({key: value for key, value in raw["cpus"][0].items() if key != "cpu"})
    allocators = {Path(library).resolve().name for library in preloaded if elf.has_malloc(library)}
    maps = elf.Maps(raw["maps"])
    places: dict[int, elf.Place] = {}
    symbols: dict[tuple[str, str], dict] = defaultdict(lambda: zero(form))
    parties = {"program": zero(form), "allocator": zero(form)}
    if raw["kernel"]:
        parties["kernel"] = zero(form)
    data = {"objects": zero(form), "own": zero(form)}

    def count(address: int, counts: dict) -> str:
        place = places.get(address) or places.setdefault(address, maps.place(address))
        party = "kernel" if place.object == elf.KERNEL else "allocator" if _is_allocators(place, allocators) else "program"
        add(symbols[place.object, place.symbol], counts)
        add(parties[party], counts)
        return party

    for one in raw["code"]:
        counts = {key: value for key, value in one.items() if key not in ("at", "objects")}
        if count(int(one["at"], 16), counts) == "allocator":
            add(data["objects" if one["objects"] else "own"], {key: counts[key] for key in counts if key not in _DONE})
    for address, loads, stores in raw["touched"]:
        count(address, {"loads": loads, "stores": stores})
    for address, instructions in raw["executed"]:
        if maps.place(address).object != elf.UNKNOWN:  # another process's: the launcher's, which lies elsewhere
            count(address, {"instructions": instructions})
    counted["parties"] = parties
    if "stacks" in raw:
        counted["stacks"] = stacks.named(raw["stacks"], maps)
    counted["symbols"] = _hottest(symbols)
    if not raw["objects"]:
        return counted
    counted["allocator_data"] = {name: {key: counts[key] for key in counts if key not in _DONE} for name, counts in data.items()}
    counted["false_sharing"] = [
        one
        | {
            "class": [
                owner or {"in": maps.place(int(address, 16)).object} for address, owner in zip((one["first"], one["second"]), one["class"])
            ]
        }
        for one in raw["false_sharing"]
    ]
    return counted


def _hottest(symbols: dict[tuple[str, str], dict]) -> list[dict]:
    ranked = sorted(symbols.items(), key=lambda item: (-_from_afar(item[1]), item[0]))[:_MOST_SYMBOLS]
    return [{"object": object_name, "symbol": symbol, **counts} for (object_name, symbol), counts in ranked]


def _is_allocators(place: elf.Place, allocators: set[str]) -> bool:
    if place.object in allocators or _ALLOCATOR.match(place.object):
        return True
    if allocators or not _C_LIBRARY.match(place.object):
        return False
    first, end = elf.malloc_of_c_library(place.path)
    return first <= place.address < end


def _from_afar(counts: dict) -> int:
    return counts["remote_fills"] + counts["remote_transfers"]
