"""What this machine can do, and which allocators it has."""

from numalloc_tools.allocators import PACKAGED
from numalloc_tools.launch import Setting, nodes, prepared
from numalloc_tools.machine.calls import inherited_policy
from numalloc_tools.problem import Problem


def node_count() -> int:
    return len(nodes.read().memory)


def policy_is_inherited() -> bool:
    """Whoever started this, such as numactl, has said already where memory comes from."""
    return inherited_policy() != "MPOL_DEFAULT"


def present_allocators() -> tuple[list[str], dict[str, str]]:
    """Those of this system, and why others do not run. What `numalloc bench` has built takes part when it is named."""
    present, missing = [], {}
    for name in PACKAGED:
        try:
            prepared(Setting(name))
            present.append(name)
        except Problem as reason:
            missing[name] = str(reason).removeprefix("--allocator: ")
    return present, missing
