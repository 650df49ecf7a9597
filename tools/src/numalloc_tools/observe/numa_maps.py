"""/proc/PID/numa_maps: the nodes of a process's pages, and the policies of its mappings."""

import re
from collections import Counter
from dataclasses import dataclass

from numalloc_tools.machine.lists import numbers
from numalloc_tools.observe.model import NodeMemory

_POLICY = re.compile(r"\S+ ((?:prefer \(many\)|weighted interleave|[a-z]+)(?:=[a-z|]+)?(?::([\d,-]*))?)")
_NODE = re.compile(r"\bN(\d+)=(\d+)")
_KILOBYTES = re.compile(r"\bkernelpagesize_kB=(\d+)")
_FILE = re.compile(r"\bfile=(\S+)")
# Memory that has a name only because processes share it.
_SHARED = re.compile(r"/dev/shm/|/dev/zero|/memfd:|/SYSV|/anon_hugepage")
# Also the copy that a package of another project brings, such as libjemalloc-5e3.so.2. TBB's allocator is malloc in its proxy only.
_OTHER = re.compile(r"/lib(jemalloc|tcmalloc|mimalloc|tbbmalloc(?=_proxy)|snmalloc|rpmalloc|hoard)[^/]*\.so[.\d]*(\\040\(deleted\))?$")
_LIBRARY = re.compile(r"/libnumalloc(-counted|-hardened)?\.so[.\d]*(\\040\(deleted\))?$")  # including a file that was replaced on disk


@dataclass(frozen=True)
class NumaMaps:
    nodes: dict[int, NodeMemory]
    policies: dict[str, int]
    under_numalloc: bool
    other_malloc: str  # the first other allocator whose library is mapped; one that is linked statically is not seen


def parse(text: str, page_size: int) -> NumaMaps:
    own: Counter[int] = Counter()
    files: Counter[int] = Counter()
    off_policy: Counter[int] = Counter()
    policies: Counter[str] = Counter()
    under_numalloc, other_malloc = False, ""
    for line in text.splitlines():
        file = _FILE.search(line)
        if file and _LIBRARY.search(file[1]):
            under_numalloc = True
        if file and not other_malloc and (other := _OTHER.search(file[1])):
            other_malloc = other[1]
        pages = _NODE.findall(line)
        if not pages:
            continue
        size = _KILOBYTES.search(line)
        unit = int(size[1]) * 1024 if size else page_size
        policy = _POLICY.match(line)
        named = numbers(policy[2]) if policy and policy[2] else []
        held = files if file and not _SHARED.match(file[1]) else own
        for number, count in pages:
            node, found = int(number), int(count) * unit
            held[node] += found
            if named and node not in named:
                off_policy[node] += found
            policies[policy[1] if policy else "unknown"] += found
    nodes = {node: NodeMemory(own[node], files[node], off_policy[node]) for node in sorted(own.keys() | files.keys())}
    return NumaMaps(nodes, dict(policies.most_common()), under_numalloc, other_malloc)
