"""What a setting changes of what would be anyway."""

from numalloc_tools.launch import Setting

LEVERS = ("threads", "memory", "huge_pages", "autonuma", "binding_only")


def levers(setting: Setting) -> int:
    """How much of it is not as it would be anyway; which allocator does not count."""
    return sum(getattr(setting, name) != getattr(Setting, name) for name in LEVERS) + len(setting.options)


def part_of(one: Setting, other: Setting) -> bool:
    """Whether the other one changes the same and more."""
    if one == other or one.allocator != other.allocator:
        return False
    same = all(getattr(one, name) in (getattr(other, name), getattr(Setting, name)) for name in LEVERS)
    return same and {*one.options} <= {*other.options}
