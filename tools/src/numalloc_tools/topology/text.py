"""The machine as text for a terminal."""

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from numalloc_tools.machine.facts import Machine
from numalloc_tools.machine.kinds import NONE, UNKNOWN
from numalloc_tools.machine.lists import ranges
from numalloc_tools.machine.nodes import Node
from numalloc_tools.machine.permissions import ALLOWED, NOT_ASKED
from numalloc_tools.machine.process import SECCOMP
from numalloc_tools.machine.words import count, size
from numalloc_tools.topology import heat

_BAR = 12


def show(machine: Machine, console: Console) -> None:
    _head(machine, console)
    console.print(_nodes(machine, "#." if console.options.ascii_only else "█░"))
    if len(machine.nodes) > 1:
        heat.show(machine.nodes, console)
    console.print(_rest(machine))


def _head(machine: Machine, console: Console) -> None:
    nodes, processor = machine.nodes, machine.processor
    console.print(Text(f"{machine.name or 'machine'}: {processor.model or 'unknown processor'}", style="bold"))
    words = [
        count(len(nodes), "memory node"),
        count(len(processor.packages), "package"),
        count(processor.cores, "core"),
        count(len(processor.cpus), "CPU"),
        size(machine.memory),
        f"Linux {machine.kernel.release}",
    ]
    console.print(", ".join(words), soft_wrap=True, markup=False)
    if not nodes.from_sysfs:
        console.print("The kernel shows no memory nodes (/sys/devices/system/node): all memory counts as one node.")


def _nodes(machine: Machine, marks: str) -> Table:
    table = Table(box=SIMPLE, pad_edge=False)
    several = len(machine.processor.packages) > 1
    huge = sorted({pages.size for node in machine.nodes for pages in node.huge_pages if pages.total})
    for name in ("node", *(["package"] if several else []), "CPUs"):
        table.add_column(name, overflow="fold")
    table.add_column("memory", justify="right", no_wrap=True)
    table.add_column("in use", no_wrap=True)
    table.add_column("kind", overflow="fold")
    for pages in huge:
        table.add_column(f"reserved {size(pages)}", justify="right")
    for node in machine.nodes:
        cells: list[str | Text] = [str(node.number)]
        if several:
            cells.append(ranges(machine.processor.packages_of(node.cpus)))
        cells += [f"{ranges(node.cpus)}  ({len(node.cpus)})" if node.cpus else "none"]
        cells += [size(node.memory) if node.memory else "none", _bar(node, marks), _kind(node, machine)]
        by_size = {pages.size: pages for pages in node.huge_pages}
        cells += [f"{by_size[pages].free} of {by_size[pages].total} free" if pages in by_size else "" for pages in huge]
        table.add_row(*cells)
    return table


def _bar(node: Node, marks: str) -> Text:
    """Memory that is neither free nor idle file cache."""
    if not node.memory:
        return Text("")
    share = 1 - (node.free + node.file_cache) / node.memory
    filled = round(_BAR * share)
    style = "red" if share > 0.95 else "yellow" if share > 0.8 else "green"
    return Text(marks[0] * filled, style).append(marks[1] * (_BAR - filled), "dim").append(f" {share:4.0%}", "default")


def _kind(node: Node, machine: Machine) -> str:
    if node.kind == NONE or not node.memory:
        nearest = machine.nodes.nearest_memory(node.number)
        return f"no memory; nearest: node {nearest.number}" if nearest else "no memory"
    plain = node.cpus or not node.told_by or node.kind == UNKNOWN
    words = [node.kind if plain else f"{node.kind} ({node.told_by})"]
    if node.tier is not None and len({other.tier for other in machine.nodes.with_memory}) > 1:
        words.append(f"tier {node.tier}")
    if node.weight is not None and len({other.weight for other in machine.nodes.with_memory}) > 1:
        words.append(f"interleave weight {node.weight}")
    return ", ".join(words)


def _rest(machine: Machine) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _lines(machine):
        table.add_row(name, Text(value))
    return table


def _lines(machine: Machine):
    settings, process, processor = machine.settings, machine.process, machine.processor
    huge, limits = settings.huge_pages, process.limits
    if processor.caches:
        yield (
            "caches",
            "; ".join(
                f"L{cache.level}{ {'Data': 'd', 'Instruction': 'i'}.get(cache.kind, '') } {size(cache.size)} for"
                f" {count(cache.cpus_each, 'CPU')} ({cache.count})"
                for cache in processor.caches
            ),
        )
    if huge.enabled is None:
        yield "huge pages", "the kernel has no transparent huge pages"
    else:
        rule = f"{huge.rule}, defrag {huge.defrag}, of {size(huge.size)}, {size(huge.in_use)} in use"
        yield "huge pages", rule + ("; off for this process and its children (prctl)" if huge.off_for_us else "")
    yield "AutoNUMA", {None: "not in this kernel", 0: "off", 1: "on", 2: "for memory tiers"}.get(settings.autonuma, f"{settings.autonuma}")
    yield "zone reclaim", "off" if not settings.zone_reclaim else f"on ({settings.zone_reclaim})"
    yield (
        "overcommit",
        {
            0: "heuristic",
            1: "always",
            2: f"never; {size(settings.committed)} of {size(settings.commit_limit)}",
        }.get(settings.overcommit, ""),
    )
    if settings.swap_total:
        yield "swap", f"{size(settings.swap_total - settings.swap_free)} of {size(settings.swap_total)} in use"
    yield "this process", f"may run on CPUs {ranges(process.cpus) or '?'}, with memory of nodes {ranges(process.mems) or '?'}"
    yield "cgroup", _cgroup(machine)
    if limited := [f"{name.replace('_', ' ')} {value if name == 'processes' else size(value)}" for name, value in limits.items() if value]:
        yield "limits", ", ".join(limited)
    yield "seccomp", SECCOMP.get(process.seccomp, "unknown") + (", no new privileges" if process.no_new_privileges else "")
    yield "calls", _calls(machine)
    if missing := machine.kernel.missing:
        yield "not in this kernel", ", ".join(f"{feature.name} (Linux {feature.since[0]}.{feature.since[1]})" for feature in missing)


def _cgroup(machine: Machine) -> str:
    group = machine.process.cgroup
    if group.version is None:
        return "none visible"
    words = [f"version {group.version}, {group.path or '/'}"]
    if group.memory_limit is not None:
        words.append(f"memory {size(group.memory_used or 0)} of {size(group.memory_limit)}")
    if group.memory_high is not None:
        words.append(f"slowed down from {size(group.memory_high)} on")
    if group.cpu_quota is not None:
        words.append(f"{group.cpu_quota:g} CPUs' worth of time")
    if group.cpus:
        words.append(f"CPUs {ranges(group.cpus)}")
    if group.mems:
        words.append(f"nodes {ranges(group.mems)}")
    return ", ".join(words)


def _calls(machine: Machine) -> str:
    if all(permission.answer == NOT_ASKED for permission in machine.permissions):
        return "not tested: these are another machine's files"
    refused = [permission for permission in machine.permissions if permission.answer != ALLOWED]
    if not refused:
        return f"all allowed: {', '.join(permission.call for permission in machine.permissions)}"
    return "; ".join(f"{one.call} {one.answer} ({one.error}), by {one.by}" for one in refused)
