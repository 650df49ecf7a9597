"""A profile as stacks of names, with amounts and nodes."""

import math
import re
from dataclasses import dataclass, field

from numalloc_tools.problem import Problem
from numalloc_tools.profile.proto import Profile
from numalloc_tools.symbols import file_name

# The allocator's own functions: their callers requested the memory.
ALLOCATOR = re.compile(
    r"^(malloc|calloc|realloc|reallocarray|posix_memalign|aligned_alloc|memalign|valloc|pvalloc|operator new.*|numalloc::.*|"
    r"numalloc_\w+|psm_\w*alloc|_Unwind_Backtrace|void\* numalloc::.*|\(anonymous namespace\)::new_slow.*)$"
)
NO_STACK = "(no stack)"


@dataclass
class Sample:
    stack: tuple[str, ...]  # the innermost function first
    objects: int
    bytes: int
    places: dict[str, str] = field(default_factory=dict)  # the labels: node_alloc, node_pages, remote_pages ...
    records: float = 0.0  # from which the amounts are estimated
    variance: float = 0.0  # of the bytes; 0: every allocation was recorded, or the file does not tell


@dataclass(frozen=True)
class View:
    """Which of a profile's values are shown."""

    name: str
    objects: str
    bytes: str
    title: str


VIEWS = {
    "live": View("live", "inuse_objects", "inuse_space", "memory in use when the profile was written"),
    "allocated": View("allocated", "alloc_objects", "alloc_space", "memory allocated while the program ran"),
    "leaked": View("leaked", "inuse_objects", "inuse_space", "memory still in use when the program ended"),
}


def comments(profile: Profile) -> list[str]:
    return [profile.string_table[number] for number in profile.comment]


def lost_records(profile: Profile) -> int:
    counts = [text.rsplit(" ", 1)[1] for text in comments(profile) if text.startswith("numalloc: lost records ")]
    return sum(int(count) for count in counts if count.isdecimal())


def without_stacks(profile: Profile) -> bool:
    return any(text.startswith("numalloc: no stacks") for text in comments(profile))


def written_at_exit(profile: Profile) -> bool:
    written = [text for text in comments(profile) if text.startswith("numalloc: written ")]
    return bool(written) and all(text.endswith("at exit") for text in written)


def samples(profile: Profile, view: View) -> list[Sample]:
    kinds = [profile.string_table[kind.type] for kind in profile.sample_type]
    missing = [name for name in (view.objects, view.bytes) if name not in kinds]
    if missing:
        raise Problem(f"the profile has no {missing[0]}; accepted: a heap profile, which this one ({', '.join(kinds)}) is not")
    if view.name == "leaked" and not written_at_exit(profile):
        raise Problem("--leaked: the profile was not written at exit, so nothing in it is leaked yet; accepted: --live, --allocated")
    objects, amount = kinds.index(view.objects), kinds.index(view.bytes)
    frames = _frames(profile)
    text = profile.string_table
    period = _period(profile)
    found = []
    for sample in profile.sample:
        if not sample.value[amount] and not sample.value[objects]:
            continue
        stack = [name for number in sample.location_id for name in frames.get(number, ())]
        while len(stack) > 1 and ALLOCATOR.match(stack[0]):
            del stack[0]
        counted = sample.value[objects], sample.value[amount]
        places = {text[label.key]: text[label.str] for label in sample.label}
        found.append(Sample(tuple(stack) or (NO_STACK,), *counted, places, *_certainty(*counted, period)))
    return found


def _period(profile: Profile) -> int:
    """The average number of bytes for each record; 0 if the file does not tell."""
    return profile.period if profile.string_table[profile.period_type.type] == "space" else 0


def _certainty(objects: int, amount: int, period: int) -> tuple[float, float]:
    """The number of records, and the variance of the bytes. Each object was recorded with a probability that depends on its size,
    and a record stands for as many objects as that says. The file has sums only: blocks of one place have their mean size here."""
    if period <= 1 or objects <= 0 or amount <= 0:
        return 0.0, 0.0
    size = amount / objects
    chance = -math.expm1(-size / period)
    records = objects * chance
    return records, records * (1 - chance) * (size / chance) ** 2


def _frames(profile: Profile) -> dict[int, tuple[str, ...]]:
    """The functions of each location, the innermost inlined one first."""
    text = profile.string_table
    functions = {function.id: text[function.name] for function in profile.function}
    mappings = {mapping.id: mapping for mapping in profile.mapping}

    def unnamed(location) -> str:
        mapping = mappings.get(location.mapping_id)
        if mapping is None:
            return f"{location.address:#x}"
        return f"{file_name(text[mapping.filename])}+{location.address - mapping.memory_start + mapping.file_offset:#x}"

    return {
        location.id: tuple(functions.get(line.function_id, "??") for line in location.line) or (unnamed(location),)
        for location in profile.location
    }
