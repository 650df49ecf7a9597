#include "api/malloc/initialise.h"

#include <atomic>

#include "api/interpose/fork_handlers.h"
#include "api/malloc/aside.h"
#include "api/malloc/process_profile.h"
#include "api/malloc/replaced.h"
#include "heap/thread/attach.h"
#include "heap/thread/fork.h"
#include "heap/thread/limit.h"
#include "options/print.h"
#include "os/clock.h"
#include "os/exit_hook.h"
#include "os/libc_call.h"
#include "os/lock.h"
#include "os/messages.h"
#include "os/topology.h"
#include "placement/memory_home.h"
#include "placement/placement.h"
#include "statistics/occasions.h"

namespace numalloc::api {

namespace {

// Set once, by the thread that calls malloc first. At `heap_works` it has still to register keys and fork handlers with
// libc, which may allocate: that already succeeds.
enum class Stage : int { nothing, stepped_aside, heap_works };
std::atomic<Stage> stage{Stage::nothing};
constinit os::Lock<os::LockRank::initialise> initialise_lock;

// Set for good when the thread has returned its heap. Later mallocs and frees of its last destructors and of libc go
// straight to the node.
NUMALLOC_THREAD_LOCAL bool heap_returned = false;

void end_heap() {
    heap_returned = true;
    detach_thread();
    placement::heap_ended();
}
// A thread whose first malloc is in a destructor of the first or second round still returns its heap. One whose
// first malloc is later may keep it, until another thread needs one and finds that its owner has died (attach.cpp).
using HeapExit = os::ExitHook<2, end_heap>;

void say_options() {
    for_each_option([](const char* name, bool by_default, auto print) {
        os::Line line;
        line << "option " << name << '=';
        print(line);
        if (by_default) line << " (default)";
        os::say(line);
    });
}

// The output of the option `verbose`: the nodes found, the address space, and the options.
NUMALLOC_COLD void say_what_was_found() {
    os::Line line;
    line << os::topology().nodes()
         << (os::topology().nodes() == 1 ? " node with memory, at most " : " nodes with memory, at most ")
         << std::uint64_t{process_heap.space().end_offset() >> 20} << " MiB of address space each; memory is "
         << (process_heap.options().memory_binding == MemoryBinding::none || process_heap.nodes() == 1 ? "not bound"
             : process_heap.options().memory_binding == MemoryBinding::strict ? "bound strictly"
                                                                              : "bound, but can spill");
    os::say(line);
    say_options();
}

bool kernel_may_balance(const os::Topology& topology) {
    if (topology.nodes() == 1 || topology.user_policy_rules() || topology.user_policy_is_local()) return false;
    return os::kernel_balances(topology.os_node(NodeId{0}), topology.os_nodes());
}

OwnerName placement_name_of_caller() {
    const placement::RecordName name = placement::record_of_caller();
    return {name.record, name.generation};
}
void placement_died(OwnerName name) {
    placement::died_unnoticed({static_cast<placement::ThreadRecord*>(name.record), name.generation});
}

bool start_heap() NUMALLOC_REQUIRES(initialise_lock) {
    // Once, with what it says of wrong values, although each malloc tries to start a heap that cannot.
    constinit static bool has_options = false;
    if (!has_options) init_options();
    has_options = true;
    os::init_topology();
    os::fork_gate.start();
    // These two look into the vDSO now: later they are asked under locks.
    (void)os::milliseconds();
    (void)os::cpu_without_call();
    placement::init_memory_home();
    HeapOptions o;
    o.memory_binding = options().memory_binding;
    o.bound_nodes = placement::bound_nodes();
    o.names_nodes = placement::process_names_nodes();
    o.kernel_balances = o.memory_binding == MemoryBinding::preferred && kernel_may_balance(os::topology());
    o.huge_pages = options().thp;
    o.purge_delay = options().purge_delay;
#if defined(NUMALLOC_EXPERIMENTS)
    o.ablations = {options().origin_free, options().remote_batching, options().hand_over,
                   options().incremental_sharing};
#endif
    o.space.reserve = options().reserve;
    o.thread_slot = align_up(sizeof(ThreadHeap), 64);
    if (!process_heap.start(o)) return false;
    start_limit();
    operators_have_heap = !operators_replaced();
    os::at_libc_call = hide_heap;
    if (options().profile != 0) start_profile();
    if (options().guarded != 0) start_guarded();
    if (options().backtrace) start_backtraces();
    if (options().verbose) say_what_was_found();
    placement::init(true);
    if (placement::has_several_nodes) owner_names = {placement_name_of_caller, placement_died};
    return true;
}

// The library still answers questions about the machine, and does nothing else.
void step_aside() NUMALLOC_REQUIRES(initialise_lock) {
    init_options();
    os::init_topology();
    os::Line line;
    line << "this program runs under " << sanitizer() << ": numalloc steps aside";
    os::say(line);
    stage.store(Stage::stepped_aside, std::memory_order_release);
}

bool initialise() {
    if (const Stage s = stage.load(std::memory_order_acquire); s != Stage::nothing) return s != Stage::stepped_aside;
    {
        os::Guard guard(initialise_lock);
        if (const Stage s = stage.load(std::memory_order_relaxed); s != Stage::nothing)
            return s != Stage::stepped_aside;
        if (stepped_aside()) {
            step_aside();
            return false;
        }
        // A library that replaces getauxval() or sysconf() may allocate in it: from the side heap.
        const os::LibcCall starting;
        if (!start_heap()) return false;
        stage.store(Stage::heap_works, std::memory_order_release);
    }
    HeapExit::make();
    register_fork_handlers();
    find_malloc_behind();
    start_statistics();
    return true;
}

// In this file, because every program has it, also one that is linked with the static library.
__attribute__((destructor)) void at_end() { end_statistics(); }

}  // namespace

// heap_fork_prepare() also waits for the initialise lock and all locks that are taken under it: os/fork_gate.h.
void fork_prepare() {
    heap_fork_prepare();
    placement::fork_prepare();
}
bool fork_prepare_briefly() {
    if (!heap_fork_prepare_briefly()) return false;
    placement::fork_prepare();
    return true;
}
void fork_parent() {
    placement::fork_parent();
    heap_fork_parent();
}
void fork_child() {
    heap_fork_child();
    placement::fork_child();
    fork_child_statistics();
}

void wake() { (void)initialise(); }
bool awake_slow() {
    // The library may still be starting.
    return os::in_libc_call() ? !stepped_aside() : initialise();
}

NodeId node_without_heap() {
    return heap_returned ? placement::memory_home_from(os::current_node()) : placement::memory_home();
}

ThreadHeap* thread_heap_slow(Bytes wanted) {
    if (attached_heap != &no_heap) {
        if (placement::has_several_nodes) rehome_current_thread(placement::memory_home(wanted));
        hide_heap(false);
        return attached_heap;
    }
    if (!initialise()) return nullptr;
    if (heap_returned || !attach_thread(placement::memory_home(wanted))) return &no_heap;
    thread_spill_limit = placement::thread_spill_limit();
    // This may allocate, which works by now. Without the hook a thread that ends keeps its heap.
    (void)HeapExit::set();
    return attached_heap;
}

}  // namespace numalloc::api
