"""Trees of /sys and /proc of machines that nobody here has, written as their kernels write them."""

import os
from pathlib import Path

from numalloc_tools.machine.lists import numbers, ranges

GIB = 1 << 20  # in kilobytes
KERNEL = "6.12.9"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def node(number: int, cpus: str = "", memory: int = 64 * GIB, free: int | None = None, distance: str = "10", **more: str) -> dict[str, str]:
    folder = f"sys/devices/system/node/node{number}"
    free = memory // 2 if free is None else free
    meminfo = "\n".join(
        f"Node {number} {name}: {value} kB" for name, value in (("MemTotal", memory), ("MemFree", free), ("Inactive(file)", 0))
    )
    files = {f"{folder}/cpulist": cpus, f"{folder}/meminfo": meminfo, f"{folder}/distance": distance}
    return files | {f"{folder}/{name}": text for name, text in more.items()}


def machine(root: Path, *nodes: dict[str, str], packages: dict[int, str] | None = None, **more: str) -> Path:
    """`more` is written last: other switches than the usual ones."""
    files: dict[str, str] = {}
    for one in nodes:
        files |= one
    folders = sorted({int(name.split("node/node")[1].split("/")[0]) for name in files if "node/node" in name})
    cpus = sorted({cpu for name, text in files.items() if name.endswith("/cpulist") for cpu in numbers(text)})
    files["sys/devices/system/node/online"] = ranges(folders)
    files["sys/devices/system/node/possible"] = ranges(folders)
    files["sys/devices/system/cpu/online"] = ranges(cpus)
    for package, listed in (packages or {0: ranges(cpus)}).items():
        for cpu in numbers(listed):
            files[f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"] = str(package)
            files[f"sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list"] = str(cpu)
    files |= {
        "proc/sys/kernel/osrelease": KERNEL,
        "proc/sys/kernel/hostname": "made-up",
        "proc/sys/kernel/numa_balancing": "0",
        "proc/sys/vm/zone_reclaim_mode": "0",
        "proc/sys/vm/overcommit_memory": "0",
        "proc/sys/vm/max_map_count": "65530",
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Made-Up 9000",
        "proc/meminfo": "MemTotal: 1 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB",
        "proc/self/status": (
            f"Name:\tx\nThreads:\t1\nCpus_allowed_list:\t{ranges(cpus)}\nMems_allowed_list:\t{ranges(folders)}\nSeccomp:\t0\nTHP_enabled:\t1"
        ),
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "sys/kernel/mm/transparent_hugepage/defrag": "always defer defer+madvise [madvise] never",
        "sys/kernel/mm/transparent_hugepage/hpage_pmd_size": "2097152",
    }
    return write(root, files | more)


def status(cpus: str, mems: str, **more: str) -> str:
    lines = {
        "Name": "x",
        "Threads": "1",
        "Cpus_allowed_list": cpus,
        "Mems_allowed_list": mems,
        "Seccomp": "0",
        "THP_enabled": "1",
    } | more
    return "\n".join(f"{name}:\t{value}" for name, value in lines.items())


def two_sockets_with_cxl(root: Path, **more: str) -> Path:
    """As Linux 6.12 shows a two-socket server with a CXL expander: CPUs of the sockets take turns."""
    tier = "sys/devices/virtual/memory_tiering"
    path = machine(
        root,
        node(0, "0-62:2", distance="10 21 14"),
        node(1, "1-63:2", distance="21 10 24"),
        node(2, "", memory=256 * GIB, free=255 * GIB, distance="14 24 10", **{"access1/initiators/node0/uevent": ""}),
        packages={0: "0-62:2", 1: "1-63:2"},
        **{f"{tier}/memory_tier4/nodelist": "0-1", f"{tier}/memory_tier22/nodelist": "2"},
        **{f"sys/kernel/mm/mempolicy/weighted_interleave/node{n}": w for n, w in enumerate(("5", "5", "2"))},
        **more,
    )
    device = "sys/devices/platform/ACPI0017:00/root0/decoder0.0/region0/dax_region0/dax0.0"
    write(root, {f"{device}/target_node": "2"})
    (root / "sys/bus/dax/devices").mkdir(parents=True)
    os.symlink(f"../../../../{device}", root / "sys/bus/dax/devices/dax0.0")
    return path


def eight_nodes(root: Path, **more: str) -> Path:
    """Two groups of four: 10, 16 within, 32 across."""
    rows = [" ".join("10" if a == b else "16" if a // 4 == b // 4 else "32" for b in range(8)) for a in range(8)]
    nodes = [node(n, f"{n * 8}-{n * 8 + 7}", distance=rows[n]) for n in range(8)]
    return machine(root, *nodes, packages={n // 4: f"{n // 4 * 32}-{n // 4 * 32 + 31}" for n in range(8)}, **more)


def xeon_max(root: Path, **more: str) -> Path:
    """Two sockets with HBM in flat mode: each socket's HBM is a node without CPUs."""

    def speed(bandwidth: int, latency: int) -> dict[str, str]:
        at = "access1/initiators"
        return {
            f"{at}/read_bandwidth": str(bandwidth),
            f"{at}/write_bandwidth": str(bandwidth),
            f"{at}/read_latency": str(latency),
            f"{at}/write_latency": str(latency),
        }

    return machine(
        root,
        node(0, "0-55", distance="10 21 13 23", **speed(262100, 100)),
        node(1, "56-111", distance="21 10 23 13", **speed(262100, 100)),
        node(2, "", distance="13 23 10 23", **speed(800000, 120)),
        node(3, "", distance="23 13 23 10", **speed(800000, 120)),
        packages={0: "0-55", 1: "56-111"},
        **more,
    )


def memory_less(root: Path, **more: str) -> Path:
    return machine(root, node(0, "0-3", distance="10 20"), node(1, "4-7", memory=0, distance="20 10"), **more)


def one_node(root: Path, **more: str) -> Path:
    return machine(root, node(0, "0-7"), **more)


def many_nodes(root: Path, count: int) -> Path:
    rows = [" ".join("10" if a == b else str(12 + 4 * min(5, abs(a - b).bit_length())) for b in range(count)) for a in range(count)]
    return machine(root, *(node(n, f"{n * 16}-{n * 16 + 15}", distance=rows[n]) for n in range(count)))


def in_cgroup_1(root: Path) -> Path:
    """A container of a Docker on cgroups of version 1, without a namespace of its own for them."""
    path, at = "/docker/abc", "sys/fs/cgroup"
    mounts = "\n".join(
        f"3{place} 29 0:2{place} {path} /sys/fs/cgroup/{name} ro,nosuid - cgroup cgroup rw,{name}"
        for place, name in enumerate(("memory", "cpuset", "cpu,cpuacct"))
    )
    return eight_nodes(
        root,
        **{
            "proc/self/cgroup": f"4:memory:{path}\n3:cpuset:{path}\n2:cpu,cpuacct:{path}\n1:name=systemd:{path}\n0::/",
            "proc/self/mountinfo": mounts,
            "proc/self/status": status("0-3", "0"),
            f"{at}/memory/memory.limit_in_bytes": str(1 << 30),
            f"{at}/memory/memory.usage_in_bytes": str(900 << 20),
            f"{at}/memory/memory.stat": f"cache 1\ninactive_file {100 << 20}",
            f"{at}/cpuset/cpuset.effective_cpus": "0-3",
            f"{at}/cpuset/cpuset.effective_mems": "0",
            f"{at}/cpu,cpuacct/cpu.cfs_quota_us": "200000",
            f"{at}/cpu,cpuacct/cpu.cfs_period_us": "100000",
        },
    )


def in_cgroup_2(root: Path, used: int, limit: int, build=eight_nodes, **more: str) -> Path:
    """A service below a slice; the slice has the limit."""
    at = "sys/fs/cgroup"
    return build(
        root,
        **{
            "proc/self/cgroup": "0::/work.slice/job.service",
            "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw",
            f"{at}/work.slice/memory.max": str(limit),
            f"{at}/work.slice/cpu.max": "max 100000",
            f"{at}/work.slice/job.service/memory.max": "max",
            f"{at}/work.slice/job.service/memory.high": "max",
            f"{at}/work.slice/job.service/memory.current": str(used),
            f"{at}/work.slice/job.service/memory.stat": "anon 1\ninactive_file 0",
            f"{at}/work.slice/job.service/cpu.max": "150000 100000",
            f"{at}/work.slice/job.service/cpuset.cpus.effective": "0-63",
            f"{at}/work.slice/job.service/cpuset.mems.effective": "0-7",
        }
        | more,
    )
