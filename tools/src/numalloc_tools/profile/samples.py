"""A profile as stacks of names, with amounts and nodes."""

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
    found = []
    for sample in profile.sample:
        if not sample.value[amount] and not sample.value[objects]:
            continue
        stack = [name for number in sample.location_id for name in frames.get(number, ())]
        while len(stack) > 1 and ALLOCATOR.match(stack[0]):
            del stack[0]
        places = {text[label.key]: text[label.str] for label in sample.label}
        found.append(Sample(tuple(stack) or (NO_STACK,), sample.value[objects], sample.value[amount], places))
    return found


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
