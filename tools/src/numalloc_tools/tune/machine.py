"""The abilities of this machine, and its allocators."""

from numalloc_tools.allocators import PACKAGED
from numalloc_tools.launch import Setting, nodes, prepared
from numalloc_tools.machine.calls import inherited_policy
from numalloc_tools.problem import Problem


def node_count() -> int:
    return len(nodes.read().memory)


def policy_is_inherited() -> bool:
    """Whether the parent, such as numactl, has already set a memory policy."""
    return inherited_policy() != "MPOL_DEFAULT"


def present_allocators() -> tuple[list[str], dict[str, str]]:
    """The allocators of this system, and the reasons why others do not run. Those that `numalloc bench` built take part if named."""
    present, missing = [], {}
    for name in PACKAGED:
        try:
            prepared(Setting(name))
            present.append(name)
        except Problem as reason:
            missing[name] = str(reason).removeprefix("--allocator: ")
    return present, missing
