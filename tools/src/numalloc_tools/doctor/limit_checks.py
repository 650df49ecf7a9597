"""Limits on a program by a container, a batch system, a shell or an old kernel."""

from collections.abc import Iterator

from numalloc_tools.doctor.finding import BAD, NOTE, OK, WARNING, Case, Finding
from numalloc_tools.machine.lists import ranges
from numalloc_tools.machine.permissions import (
    AFFINITY,
    ASK_PAGES,
    ASK_POLICY,
    BIND,
    CAPABILITY,
    HOME,
    KILLED,
    NOT_ASKED,
    REFUSED,
    SET_POLICY,
    Permission,
)
from numalloc_tools.machine.words import count, size
from numalloc_tools.options_table import bytes_of

_NEARLY = 0.8
_ALMOST_GONE = 0.95
_USUAL_MAPPINGS = 65530
_OLD_LIBC = (2, 35)


def check(case: Case) -> Iterator[Finding]:
    for one in (_calls, _cpus, _mems, _quota, _memory_limit, _address_space, _overcommit, _mappings, _age):
        yield from one(case)


# The purpose of each call, and the library's behaviour without it: docs/environments.md.
_USES = {
    BIND: (
        "the library binds memory to its node. Without it, pages are on the node of their first touch: psm_alloc, memory=... "
        "and spilling to the nearest node have no effect"
    ),
    AFFINITY: "the library binds threads to a node. Without it, they move between nodes, and their memory becomes remote",
    ASK_POLICY: "the library checks whether numactl set a memory policy. Without it, the library overrides numactl",
    SET_POLICY: "numactl and numalloc run place the memory of any program. The library itself never calls it",
    ASK_PAGES: "numalloc_node_of() and the tools query the node of a page. Nothing else needs it",
    HOME: "memory=bind:LIST prefers the nearest node of its list",
}
_FATAL = (BIND,)
_HURTS = (AFFINITY, ASK_POLICY)


def _calls(case: Case) -> Iterator[Finding]:
    permissions = {one.call: one for one in case.machine.permissions if one.call in _USES}
    refused = [one for one in permissions.values() if one.answer in (REFUSED, KILLED) and "too old" not in one.by]
    for one in refused:
        severity = NOTE
        if case.several_nodes:
            severity = BAD if one.call in _FATAL or one.answer == KILLED else WARNING if one.call in _HURTS else NOTE
        ending = "" if case.several_nodes else ". It is never called where there is one node"
        verb = "is refused" if one.answer == REFUSED else "ends the caller"
        yield Finding(
            severity,
            f"call-{one.call}",
            f"{one.call} {verb} ({one.error}), by {one.by}",
            f"With it, {_USES[one.call]}{ending}.",
            _allow(one),
        )
    if not refused and not any(one.answer == NOT_ASKED for one in permissions.values()):
        yield Finding(OK, "calls", f"Calls about nodes are allowed: {', '.join(permissions)}")


def _allow(one: Permission) -> list[str]:
    if "seccomp" not in one.by:
        return ["A kernel with CONFIG_NUMA" if "built without" in one.by else "Read the security module's log: dmesg, or journalctl -k"]
    if one.answer == KILLED:
        return [f"A filter that allows {one.call}, or refuses it with EPERM (systemd: SystemCallErrorNumber=EPERM)"]
    if CAPABILITY in one.by:
        return ["docker run --cap-add SYS_NICE ...", "Kubernetes: securityContext: capabilities: add: [SYS_NICE]"]
    return [
        f"docker run --security-opt seccomp=FILE ... with a profile that allows {one.call}; docs/environments.md lists the library's calls"
    ]


def _cpus(case: Case) -> Iterator[Finding]:
    allowed, online = case.process.cpus, case.machine.processor.cpus
    if not allowed:
        return
    if case.threads and case.threads > len(allowed):
        yield Finding(
            WARNING,
            "cpuset",
            f"{count(case.threads, 'thread')} for {count(len(allowed), 'CPU')} ({ranges(allowed)})",
            "Threads share CPUs. A thread that holds a lock can lose its CPU while others wait for the lock.",
            [
                f"Start the program with {len(allowed)} threads, such as by OMP_NUM_THREADS={len(allowed)}, or give its container"
                " or cpuset more CPUs"
            ],
        )
    elif len(allowed) < len(online):
        yield Finding(
            NOTE,
            "cpuset",
            f"This process may run on {len(allowed)} of {len(online)} CPUs ({ranges(allowed)})",
            "A program that counts the online CPUs, instead of those that it may use, starts too many threads.",
            [f"Set the number of threads of such a program to {len(allowed)}"],
        )
    else:
        yield Finding(OK, "cpuset", f"All {count(len(online), 'CPU')} may be used")


def _mems(case: Case) -> Iterator[Finding]:
    nodes = case.machine.nodes
    running = sorted(node.number for node in nodes if set(node.cpus) & set(case.process.cpus))
    shut = [node.number for node in nodes.with_memory if node.number in running and node.number not in case.process.mems]
    if not case.process.mems or not shut:
        return
    yield Finding(
        WARNING,
        "cpuset-mems",
        f"Threads may run on nodes {ranges(running)}, but memory comes from {ranges(case.process.mems)} only (cpuset.mems)",
        f"All memory is remote for threads on {'nodes' if len(shut) > 1 else 'node'} {ranges(shut)}.",
        [
            f"Give the cpuset the same nodes for both: cpuset.mems={ranges(running)}",
            f"or run on the CPUs whose memory it has: taskset -c {ranges(_cpus_of(case, case.process.mems))} PROGRAM",
        ],
    )


def _cpus_of(case: Case, numbers: list[int]) -> list[int]:
    return sorted(cpu for node in case.machine.nodes if node.number in numbers for cpu in node.cpus if cpu in case.process.cpus)


def _quota(case: Case) -> Iterator[Finding]:
    quota = case.process.cgroup.cpu_quota
    threads = case.threads or len(case.process.cpus)
    if quota and quota < threads:
        yield Finding(
            WARNING if case.threads else NOTE,
            "cpu-quota",
            f"The cgroup gives {quota:g} CPUs' worth of time, to {threads} " + ("threads" if case.threads else "CPUs"),
            "When it is used up, all threads stop until the next period, up to 100 ms, even if they hold locks.",
            [
                f"As many threads as the quota allows ({max(1, round(quota))}), a cpuset instead of a quota, or a larger quota"
                " (docker run --cpus)"
            ],
        )


def _memory_limit(case: Case) -> Iterator[Finding]:
    group = case.process.cgroup
    limit = min((one for one in (group.memory_limit, group.memory_high) if one is not None), default=None)
    if limit is None or group.memory_used is None or (case.machine.memory and limit >= case.machine.memory):
        return
    share = group.memory_used / limit if limit else 1.0
    slows = group.memory_high is not None and limit == group.memory_high and limit != group.memory_limit
    what = f"{size(group.memory_used)} of this cgroup's limit of {size(limit)} are in use"
    if share < _NEARLY:
        yield Finding(OK, "memory-limit", what)
        return
    then = (
        "Above it every page fault is slowed down."
        if slows
        else ("At the limit the kernel kills a process; malloc does not fail before that.")
    )
    yield Finding(
        BAD if share >= _ALMOST_GONE and not slows else WARNING,
        "memory-limit",
        what,
        then,
        ["A higher limit (docker run --memory, systemd's MemoryMax=)", "NUMALLOC_PURGE_DELAY=0 returns free memory at once"],
    )


def _address_space(case: Case) -> Iterator[Finding]:
    limits = case.process.limits
    for name, words, command in (
        ("address_space", "address space", "ulimit -v unlimited"),
        ("data", "private memory", "ulimit -d unlimited"),
    ):
        limit = limits.get(name)
        if limit is None:
            continue
        held = (bytes_of(case.option("reserve")) or 0) * len(case.usable_nodes) if name == "address_space" else 0
        if held > limit / 2:
            yield Finding(
                BAD if held >= limit else WARNING,
                "address-space-limit",
                f"NUMALLOC_RESERVE reserves {size(held)} of the limit of {size(limit)} of address space",
                "Reserved address space counts as used.",
                [command, "NUMALLOC_RESERVE=0"],
            )
        else:
            yield Finding(
                NOTE,
                f"{name.replace('_', '-')}-limit",
                f"The process may map {size(limit)} of {words}",
                "At the limit malloc fails, as any malloc does: the library maps little more than it uses.",
                [command],
            )


def _overcommit(case: Case) -> Iterator[Finding]:
    settings = case.machine.settings
    if settings.overcommit != 2:
        return
    share = settings.committed / settings.commit_limit if settings.commit_limit else 0.0
    yield Finding(
        WARNING if share >= _NEARLY else NOTE,
        "overcommit",
        f"Strict overcommit (overcommit_memory=2): {size(settings.committed)} of {size(settings.commit_limit)} are committed",
        "Mapped memory counts even if unused; at the limit malloc and fork fail. The library maps memory only as it grows, "
        "so it works here.",
        (
            ["sysctl vm.overcommit_memory=0", "or a higher limit: sysctl vm.overcommit_ratio=90"]
            if share >= _NEARLY
            else ["sysctl vm.overcommit_memory=0"]
        ),
    )


def _mappings(case: Case) -> Iterator[Finding]:
    most = case.machine.settings.max_map_count
    if most is not None and most < _USUAL_MAPPINGS:
        yield Finding(
            WARNING,
            "mappings",
            f"A process may have {most} mappings (max_map_count); {_USUAL_MAPPINGS} are usual",
            "Huge pages that were split and large blocks that were moved need mappings of their own. At the limit, the "
            "library copies blocks instead of moving them, and may be unable to return memory.",
            [f"sysctl vm.max_map_count={_USUAL_MAPPINGS}"],
        )


def _age(case: Case) -> Iterator[Finding]:
    kernel = case.machine.kernel
    missing = [feature for feature in kernel.missing if case.several_nodes or not feature.name.startswith(("MPOL", "set_mem"))]
    if missing:
        names = ", ".join(f"{feature.name} (Linux {feature.since[0]}.{feature.since[1]})" for feature in missing)
        yield Finding(NOTE, "kernel", f"Linux {kernel.release} lacks {names}", "; ".join(feature.without for feature in missing) + ".")
    libc = kernel.libc_version
    if libc is not None and libc < _OLD_LIBC:
        yield Finding(
            NOTE,
            "libc",
            f"{kernel.libc} does not register rseq for its threads (2.35 does)",
            "The library asks the kernel for a thread's node, and cannot flush the lists of waiting threads.",
        )


def threads_of(environment) -> int | None:
    """The number of threads that OpenMP programs are given."""
    first = (environment.get("OMP_NUM_THREADS") or "").split(",")[0].strip()
    return int(first) if first.isdecimal() else None
