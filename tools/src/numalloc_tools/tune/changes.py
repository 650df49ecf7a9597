"""The levers and options that a setting changes from their defaults."""

from numalloc_tools.launch import Setting

LEVERS = ("threads", "memory", "huge_pages", "autonuma", "binding_only")


def levers(setting: Setting) -> int:
    """The number of changes from the defaults; the allocator does not count."""
    return sum(getattr(setting, name) != getattr(Setting, name) for name in LEVERS) + len(setting.options)


def part_of(one: Setting, other: Setting) -> bool:
    """Whether the other setting changes the same and more."""
    if one == other or one.allocator != other.allocator:
        return False
    same = all(getattr(one, name) in (getattr(other, name), getattr(Setting, name)) for name in LEVERS)
    return same and {*one.options} <= {*other.options}
