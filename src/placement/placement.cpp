#include "placement/placement.h"

#include <cerrno>

#include "options/options.h"
#include "os/go_runtime.h"
#include "os/memory.h"
#include "os/messages.h"
#include "os/topology.h"
#include "placement/internal.h"
#include "placement/memory_home.h"
#include "placement/rule_file.h"

// Defined where pthread_create and the rest are interposed. Without them (the static library), and where the program's
// calls go to libc all the same, a binding could not be hidden from the program and its children: no thread is bound.
extern "C" __attribute__((weak)) bool numalloc_interposes_threads();

namespace numalloc::placement {

namespace detail {
NUMALLOC_THREAD_LOCAL ThreadRecord* current = nullptr;
NUMALLOC_THREAD_LOCAL std::uint16_t ended_on = no_node.value;
}  // namespace detail
constinit Process process;
using detail::current;
using detail::ended_on;

namespace {

constinit RuleFile rules;  // constant after init()

}  // namespace

PlaceId current_place() { return process.places.of_os_node(os::current_os_node()); }

PlaceSet places_of(const ThreadRecord* record) {
    PlaceSet result;
    for (unsigned i = 0; i < process.places.count; ++i)
        for (unsigned w = 0; w < process.words; ++w)
            if ((record->user_mask()[w] & process.mask_of(PlaceId{i})[w]) != 0) {
                result.add(i);
                break;
            }
    return result;
}

PlaceId only_place_of(const ThreadRecord* record) {
    const PlaceSet allowed = places_of(record);
    const PlaceId first{allowed.first()};
    return allowed.count() == 1 && lies_within(record, first) ? first : no_place;
}

PlaceSet all_places() {
    PlaceSet result;
    for (unsigned i = 0; i < process.places.count; ++i) result.add(i);
    return result;
}

// A thread that already runs (main) stays where it is unless a rule names it, because its memory lies there.
PlaceId choose(unsigned number, const PlaceSet& allowed, PlaceId runs_on, Vacated vacated) {
    const unsigned count = allowed.count();
    if (count == 0) return no_place;
    if (count == 1) return PlaceId{allowed.first()};
    if (const PlaceId ruled = rules.place_of(number); ruled != no_place && allowed.test(ruled.value)) return ruled;
    if (runs_on != no_place && allowed.test(runs_on.value)) return runs_on;
    PlaceId from = process.first_place == no_place ? current_place() : process.first_place;
    if (from == no_place) from = PlaceId{0};
    return options().binding == Binding::saturate ? choose_saturated(process.places, allowed, from, vacated)
                                                  : choose_interleaved(process.places, allowed, from, vacated);
}

namespace {

void note_refusal(long result) NUMALLOC_REQUIRES(process.lock) {
    if (process.refusal_noted || !options().verbose) return;
    process.refusal_noted = true;
    os::Line line;
    line << "sched_setaffinity refused a node's CPUs (errno " << static_cast<std::int64_t>(-result)
         << "): such threads are not bound, and allocate on the node where they run";
    os::say(line);
}

}  // namespace

void leave(ThreadRecord* record) {
    if (record->place != no_place) --process.places[record->place].threads;
    record->place = no_place;
    record->bound = false;
}

void enter(ThreadRecord* record, PlaceId id) {
    record->place = id;
    if (id != no_place) ++process.places[id].threads;
}

namespace {

void place_now(ThreadRecord* record, PlaceId runs_on, Vacated vacated) NUMALLOC_REQUIRES(process.lock) {
    leave(record);
    const PlaceSet allowed = places_of(record);
    const PlaceId promised = answered_place(record->owner);
    const bool keep_promise = promised != no_place && allowed.test(promised.value);
    enter(record, keep_promise ? promised : choose(record->number, allowed, runs_on, vacated));
}

}  // namespace

void place(ThreadRecord* record, Vacated vacated) {
    if (!process.at_first_use || answered_place(record->owner) != no_place) return place_now(record, no_place, vacated);
    leave(record);
    wait_for_first_use(record);
    enter(record, only_place_of(record));
}

bool bind(ThreadRecord* record, bool wide, Mask request) {
    owner_was_moved(record);
    const bool placed = record->place != no_place;
    record->bound = placed && !is_forking(record) && is_narrowed(record);
    if (placed) record->os_node.store(process.places[record->place].os_node, std::memory_order_relaxed);
    const NodeId home = placed ? process.places[record->place].home : no_node;
    record->home.store(home.value, std::memory_order_relaxed);
    kernel_request_of(record, request);
    return record->bound || !wide;
}

void was_refused(ThreadRecord* record, long result) {
    if (record->place != no_place) note_refusal(result);
    record->bound = false;
    record->home.store(no_node.value, std::memory_order_relaxed);
}

void note_bound(const ThreadRecord* record, bool was_bound) {
    if (record->bound && !was_bound) process.bound_threads.fetch_add(1, std::memory_order_relaxed);
}

void apply(ThreadRecord* record, int tid, bool wide) {
    NUMALLOC_MASK(request);
    const bool was_bound = record->bound;
    if (!bind(record, wide, request)) return;
    if (const long result = set_affinity(tid, request); result < 0) was_refused(record, result);
    note_bound(record, was_bound);
}

void settle_runner(ThreadRecord* record) {
    place_now(record, current_place(), {});
    if (process.first_place == no_place) process.first_place = record->place;
    apply(record, 0, true);
}

void move_to(ThreadRecord* record, PlaceId id) {
    leave(record);
    enter(record, id);
    if (!record->starting) apply(record, record->tid, false);
}

namespace {

// Makes a record for a running thread that has none: main, and threads that were not announced.
ThreadRecord* take_in(const std::uint64_t* kernel_mask) NUMALLOC_REQUIRES(process.lock) {
    ThreadRecord* record = process.records.take();
    if (record == nullptr) return nullptr;
    number_thread(record);
    process.records.set_tid(record, os::thread_id());
    process.records.set_handle(record, pthread_self());
    set_user_mask(record, kernel_mask);
    current = record;
    return record;
}

// An unannounced thread inherits its creator's affinity. If that is another thread's binding, copies the user's mask of
// that thread and returns true.
bool look_through_ours(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    for (ThreadRecord* other = process.records.first(); other != nullptr; other = other->next) {
        if (other == record || !is_bound_mask(other, user_mask_of(record))) continue;
        set_user_mask(record, user_mask_of(other));
        record->whole.store(other->whole.load(std::memory_order_relaxed), std::memory_order_relaxed);
        return true;
    }
    return false;
}

}  // namespace

void adopt() {
    NUMALLOC_MASK(mask);
    if (get_affinity(0, mask) < 0) return;
    os::Guard guard(process.lock);
    const bool alone = process.records.first() == nullptr;
    ThreadRecord* record = take_in(mask.data());
    if (record == nullptr || alone) return;
    const bool narrowed = look_through_ours(record);
    place(record);
    apply(record, 0, !narrowed);
}

namespace {

// Called when the calling thread runs on a node to which it is not bound. It has widened its mask, or the mask was set
// from outside, perhaps to the user's: then the thread is bound again.
void was_moved() {
    if (!is_own(current)) return;
    NUMALLOC_MASK(mask);
    if (get_affinity(0, mask) <= 0) return;
    os::Guard guard(process.lock);
    if (is_expected_mask(current, mask) || (is_user_mask(current, mask) && may_be_wide(current))) return;
    renew_user_mask(current, 0);
}

void complain(const char* text) {
    os::Line line;
    line << text;
    os::say(line);
}

// Finds the nodes with CPUs. false if there is no memory for the tables.
bool find_places(unsigned words, Mask mine) {
    const os::Topology& topology = os::topology();
    PlaceSet with_cpus;
    for (unsigned cpu = 0; cpu < words * 64; ++cpu)
        if (const int n = topology.os_node_of_cpu(cpu); n >= 0) with_cpus.add(static_cast<unsigned>(n));
    const unsigned count = with_cpus.count();
    const Bytes mask_bytes = Bytes{count} * words * sizeof(std::uint64_t);
    void* memory = os::map(align_up(max_of<Bytes>(mask_bytes + count * sizeof(Place), 1), os::page_size()));
    if (memory == nullptr) return false;
    process.masks = static_cast<std::uint64_t*>(memory);
    process.places = {reinterpret_cast<Place*>(process.masks + std::size_t{count} * words), count};

    unsigned next = 0;
    for (unsigned n = with_cpus.first(); n < os::max_os_nodes; n = with_cpus.next(n + 1))
        process.places.place[next++] = {0, 0, static_cast<std::uint16_t>(n), topology.home_of_os_node(n)};
    for (unsigned cpu = 0; cpu < words * 64; ++cpu) {
        const PlaceId id = process.places.of_os_node(topology.os_node_of_cpu(cpu));
        if (id == no_place) continue;
        process.masks[std::size_t{id.value} * words + cpu / 64] |= std::uint64_t{1} << (cpu % 64);
        if ((mine[cpu / 64] >> (cpu % 64) & 1) != 0) ++process.places[id].cpus;
    }
    return true;
}

void load_rules(const Places& places) {
    if (options().binding != Binding::file) return;
    if (options().binding_file == nullptr)
        complain("NUMALLOC_BINDING=file needs NUMALLOC_BINDING_FILE; threads are interleaved");
    else rules.load(options().binding_file, places, complain);
}

bool start_binding(bool has_heap) {
    if (options().binding == Binding::none || &numalloc_interposes_threads == nullptr) return false;
    if (!numalloc_interposes_threads()) {
        if (options().verbose) complain("libc comes before numalloc: threads are not bound");
        return false;
    }
    if (os::has_go_runtime()) {
        if (options().verbose) complain("Go's runtime starts children by itself: threads are not bound");
        return false;
    }
    os::CpuMask kernels;
    const long mask_bytes = os::get_affinity(0, kernels);
    if (mask_bytes <= 0) return false;
    const unsigned words = static_cast<unsigned>(mask_bytes) / 8;
    process.words = words;
    const Mask mine(kernels.data());
    process.at_first_use = has_heap && options().binding == Binding::automatic;
    if (!find_places(words, mine)) return false;
    load_rules(process.places);
    if (options().verbose) {
        os::Line line;
        line << process.places.count << " nodes with CPUs: threads are bound, "
             << (process.at_first_use ? "when they allocate" : "from the second thread on");
        os::say(line);
    }
    os::Guard guard(process.lock);
    if (!process.records.start(words)) return false;
    ThreadRecord* const main = take_in(mine.data());
    if (main == nullptr) return false;
    main->whole.store(is_whole(mine), std::memory_order_relaxed);
    wait_for_first_use(main);
    return true;
}

}  // namespace

constinit bool has_several_nodes = false;

void init(bool has_heap) {
    if (os::topology().nodes() == 1) {
        // Nothing to bind, but mistakes in the file are reported as on the machine that it is for.
        Place only{};
        only.cpus = 1;
        only.os_node = static_cast<std::uint16_t>(os::topology().os_node(NodeId{0}));
        load_rules({&only, 1});
        return;
    }
    process.mode = start_binding(has_heap) ? Mode::active : Mode::follow;
    if (process.mode == Mode::follow) note_nodes_of_start();
    has_several_nodes = true;
}

bool active() { return process.mode == Mode::active; }

std::uint64_t bound_threads() { return process.bound_threads.load(std::memory_order_relaxed); }
std::uint64_t unbound_threads() { return process.unbound_threads.load(std::memory_order_relaxed); }

NodeId home_node(Bytes wanted) {
    if (process.mode == Mode::off) return NodeId{0};
    if (process.mode == Mode::follow) return os::current_node();
    if (current == nullptr) {
        if (ended_on != no_node.value) return NodeId{ended_on};
        adopt();
        if (current == nullptr) return os::current_node();
    }
    if (current->home.load(std::memory_order_relaxed) == no_node.value && !bind_at_first_use(current, wanted))
        return os::current_node();
    if (NUMALLOC_UNLIKELY(current->left_wide.load(std::memory_order_relaxed))) bind_left_wide(current);
    if (os::current_os_node() != current->os_node.load(std::memory_order_relaxed) && !current->starting) was_moved();
    const NodeId home{current->home.load(std::memory_order_relaxed)};
    return home == no_node ? os::current_node() : home;
}

int rehome_thread(pthread_t thread, unsigned os_node) {
    if (process.mode == Mode::off) return 0;
    if (process.mode == Mode::active) {
        if (current == nullptr) adopt();
        os::Guard guard(process.lock);
        ThreadRecord* const record = process.records.find(thread);
        if (record == nullptr) return ESRCH;
        const PlaceId target = process.places.of_os_node(static_cast<int>(os_node));
        if (target == no_place || !places_of(record).test(target.value)) return ENXIO;
        if (process.first_place == no_place) process.first_place = target;
        move_to(record, target);
        if (record->starting || record->home.load(std::memory_order_relaxed) != no_node.value) return 0;
    }
    // Threads are not bound, or the kernel has refused: places the memory only.
    if (!pthread_equal(thread, pthread_self())) return ENOTSUP;
    MemoryPlacement there;
    there.kind = MemoryPlacement::Kind::preferred;
    there.nodes.add(os_node);
    return set_thread_memory(&there);
}

}  // namespace numalloc::placement
