"""The core promise on eight nodes, in one virtual machine: threads are placed as the paper says, memory is where the program
says, and no page is remote. It is all of tests/numa that every change has to pass; the rest runs with --full.

Nothing here depends on time: the emulator may be slow. It needs a kernel in the cache:

    python -m numalloc_tools.guest.fetch
"""

import pytest
from jobs import ROOT, Jobs, passed
from numalloc_tools.guest import batch, kernel
from numalloc_tools.guest.scenarios import Switches, cell
from placed import Nodes, threads
from places import EVERYWHERE
from proof import SMOKE, check

COUNT = 8
CPUS = 2  # of each node
NODES = Nodes(dict.fromkeys(range(COUNT), CPUS))
JOBS = Jobs(nodes=COUNT)
KERNEL = Switches("madvise", False)
THREADS = COUNT * CPUS

JOBS.add("auto", "placement", 3 * THREADS)
JOBS.add("interleave", "placement", 2 * THREADS, options={"binding": "interleave"})
JOBS.add("saturate", "placement", THREADS, options={"binding": "saturate"})
JOBS.add("saturate-over", "placement", 2 * THREADS, options={"binding": "saturate"})
JOBS.add("none", "placement", 6, options={"binding": "none"})
JOBS.add("confined", "placement", 8, around=["numactl", "--cpunodebind=1,4"], options={"binding": "interleave"})
# Another process changes the masks: it is the cpuset of the shell that starts the program.
GROWN = "/sys/fs/cgroup/numalloc-grown"
CPUSET = f"""
mkdir -p /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p {GROWN} && echo {{cpus}} >{GROWN}/cpuset.cpus && echo 0-7 >{GROWN}/cpuset.mems
sh -c 'echo $PPID >{GROWN}/cgroup.procs'
"""
OUTSIDE = []
for binding in ["auto", "interleave"]:
    for name, words, before in [
        ("taskset", ["taskset"], ""),
        ("cpuset-grows", ["cpuset", f"{GROWN}/cpuset.cpus", "0-5"], "0,2"),
        ("cpuset-shrinks", ["cpuset", f"{GROWN}/cpuset.cpus", "2-3"], "0-5"),
    ]:
        OUTSIDE.append(f"outside-{name}-{binding}")
        JOBS.add(OUTSIDE[-1], "outside", *words, options={"binding": binding}, setup=before and CPUSET.format(cpus=before))
SET_MASKS = ["handler", "jump", "vfork", "filter", "starting", "reset", "system", "probe", "cut"]
for how in SET_MASKS:
    JOBS.add(f"set-masks-{how}", "set_masks", how)
for how in ("system", "probe"):
    SET_MASKS.append(f"{how}-interleave")
    JOBS.add(f"set-masks-{how}-interleave", "set_masks", how, options={"binding": "interleave"})
# CPUs that are offline when the program begins.
LATE_CPUS = "10-11"
SET_MASKS.append("online")
JOBS.add(
    "set-masks-online",
    "set_masks",
    "online",
    LATE_CPUS,
    setup="for cpu in 10 11; do echo 0 >/sys/devices/system/cpu/cpu$cpu/online; done",
)
KEPT = {
    "realloc": (["realloc"], {"binding": "none"}, []),
    "owners": (["owners", "1"], {"binding": "none"}, ["taskset", "0xc"]),
    "ending": (["ending", "1"], {"memory": "bind:1"}, ["taskset", "0x3"]),
}
for name, (words, options, around) in KEPT.items():
    JOBS.add(f"kept-{name}", "kept", *words, options=options, around=around)
JOBS.add("go-note", "go_note")
JOBS.add("starts", "starts")
for binding in ("auto", "interleave"):
    JOBS.add(f"opened-{binding}", "opened", options={"binding": binding})
JOBS.add("ends", "ends", "raw", 4 * THREADS)
for binding in ("auto", "interleave"):
    for how in ("signal", "early"):
        JOBS.add(f"ends-{how}-{binding}", "ends", how, 4 * THREADS, options={"binding": binding})
JOBS.add("ends-rooms-saturate", "ends", "rooms", THREADS, options={"binding": "saturate"})
SIGNALS = ["masks", "fault", "fork"]
for what in SIGNALS:
    JOBS.add(f"thread-signals-{what}", "thread_signals", what, options={"binding": "interleave"})
INHERITED = ["copies", "named", "later", "kept", "room", "mapped"]
for what in INHERITED:
    JOBS.add(f"inherited-{what}", "inherited", what)
# Free memory then has all pages that it ever had.
UNPURGED = ["copies", "later"]
for what in UNPURGED:
    JOBS.add(f"inherited-{what}-unpurged", "inherited", what, options={"purge_delay": "-1"})
JOBS.add("stacks", "stacks")
# A container of 64 MiB whose live data fits.
LIMITED = "/sys/fs/cgroup/numalloc-limited"
LIMIT = f"""
mkdir -p /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir -p {LIMITED} && echo 64M >{LIMITED}/memory.max
sh -c 'echo $PPID >{LIMITED}/cgroup.procs'
"""
JOBS.add("limited", "limited", 15, 30, 12, 64, setup=LIMIT)
FILTERED = ["prctl", "syscall"]
for how in FILTERED:
    JOBS.add(f"filtered-{how}", "filtered", how, folder=ROOT / "tests/programs/survive")
for name, words in EVERYWHERE.items():
    JOBS.add(name, *words)
for scenario in SMOKE:
    JOBS.add_scenario(scenario)
# The last ones: AutoNUMA stays on, and looks at pages as often as it can.
BALANCING = """
mount -t debugfs none /sys/kernel/debug 2>/dev/null
cd /sys/kernel/debug/sched/numa_balancing && echo 20 >scan_period_min_ms && echo 100 >scan_period_max_ms && echo 0 >scan_delay_ms
cd / && echo 1 >/proc/sys/kernel/numa_balancing
"""
BALANCED = {"local": ["numactl", "--localalloc"], "home": [], "follow": []}
for what, around in BALANCED.items():
    JOBS.add(f"balanced-{what}", "balanced", what, setup=BALANCING, around=around)


@pytest.fixture(scope="module")
def report(library) -> batch.Report:
    booted = kernel.kept()
    if booted is None:
        pytest.fail("no kernel is in the cache; fetch it with python -m numalloc_tools.guest.fetch (XDG_CACHE_HOME names the cache)")
    return JOBS.run(library, thp=KERNEL.thp, autonuma=KERNEL.autonuma, kernel_image=booted)


def test_auto_binds_no_more_threads_than_a_node_has_cpus(report):
    NODES.check_room(threads(report, "auto"))


def test_interleave_goes_round_the_nodes(report):
    NODES.check_interleaved(threads(report, "interleave"))


@pytest.mark.parametrize("name", ["saturate", "saturate-over"])
def test_saturate_fills_a_node_before_the_next(report, name):
    """Main takes a CPU of its node, so the first thread is on the same node. Where main itself was seen says nothing: it is
    bound to no node, and the kernel may have moved it."""
    nodes = NODES.of_bound(threads(report, name))
    NODES.check_saturated([nodes[0], *nodes])


def test_none_leaves_threads_alone(report):
    NODES.check_left_alone(threads(report, "none"))


def test_numactl_confines_binding(report):
    assert NODES.of_bound(threads(report, "confined"))[:4] in ([1, 4, 1, 4], [4, 1, 4, 1])


@pytest.mark.parametrize("name", OUTSIDE)
def test_masks_that_change_from_outside_are_obeyed(report, name):
    passed(report, name)


@pytest.mark.parametrize("how", SET_MASKS)
def test_masks_that_a_program_sets_where_few_do_are_kept(report, how):
    passed(report, f"set-masks-{how}")


@pytest.mark.parametrize("name", KEPT)
def test_memory_stays_where_it_was_named(report, name):
    passed(report, f"kept-{name}")


def test_threads_and_children_start_with_the_users_mask(report):
    passed(report, "starts")


@pytest.mark.parametrize("binding", ["auto", "interleave"])
def test_nothing_is_bound_where_the_program_has_libcs_calls(report, binding):
    passed(report, f"opened-{binding}")


def test_a_thread_that_ends_unnoticed_leaves_its_room(report):
    passed(report, "ends")


@pytest.mark.parametrize("name", ["signal-auto", "signal-interleave", "early-auto", "early-interleave", "rooms-saturate"])
def test_a_thread_that_a_handler_ends_leaves_nothing_behind(report, name):
    passed(report, f"ends-{name}")


@pytest.mark.parametrize("what", SIGNALS)
def test_signals_are_as_the_program_set_them_around_a_threads_creation(report, what):
    passed(report, f"thread-signals-{what}")


@pytest.mark.parametrize("what", INHERITED)
def test_what_a_child_inherits(report, what):
    passed(report, f"inherited-{what}")


@pytest.mark.parametrize("what", UNPURGED)
def test_nor_does_a_child_find_pages_in_free_memory(report, what):
    passed(report, f"inherited-{what}-unpurged")


def test_a_page_of_stack_suffices(report):
    passed(report, "stacks")


def test_growth_near_the_memory_limit_gives_back_first(report):
    passed(report, "limited")


def test_a_process_with_the_runtime_of_go_is_not_bound(report):
    passed(report, "go-note")


@pytest.mark.parametrize("how", FILTERED)
def test_a_filter_that_kills_meets_no_call_of_nodes(report, how):
    passed(report, f"filtered-{how}")


@pytest.mark.parametrize("name", EVERYWHERE)
def test_memory_is_where_the_program_says(report, name):
    passed(report, name)


@pytest.mark.parametrize("what", BALANCED)
def test_large_blocks_follow_their_users_where_the_kernel_balances(report, what):
    passed(report, f"balanced-{what}")


@pytest.mark.parametrize("scenario", SMOKE, ids=lambda one: one.name)
def test_no_page_is_remote(report, scenario):
    check(cell(scenario, KERNEL, "numalloc", report.results.get(scenario.name)), COUNT, report.findings)
