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

// Defined where pthread_create and the rest are interposed. Without them (the static library) a
// binding could not be hidden from the program and its children, so threads are not bound.
extern "C" __attribute__((weak)) const bool numalloc_interposes_threads;

namespace numalloc::placement {

namespace detail {
NUMALLOC_THREAD_LOCAL ThreadRecord* current = nullptr;
}
constinit Process process;
using detail::current;

namespace {

NUMALLOC_THREAD_LOCAL bool keeps_record = false;  // keep_record_to_the_end()

// The last home of a thread whose record is gone: its last frees still need one.
NUMALLOC_THREAD_LOCAL std::uint16_t ended_on = no_node.value;

constinit RuleFile rules;  // constant after init()

PlaceId current_place() { return process.places.of_os_node(os::current_os_node()); }

}  // namespace

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
}

void place(ThreadRecord* record, PlaceId runs_on, Vacated vacated) {
    leave(record);
    const PlaceSet allowed = places_of(record);
    const PlaceId promised = answered_place(record->owner);
    const bool keep_promise = promised != no_place && allowed.test(promised.value);
    record->place = keep_promise ? promised : choose(record->number, allowed, runs_on, vacated);
    if (record->place != no_place) ++process.places[record->place].threads;
}

namespace {

// Notes where a thread lives from now on. Returns whether its mask in the kernel must become `request` for that.
// `wide`: the mask is the user's now.
bool bind(ThreadRecord* record, bool wide, os::CpuMask& request) NUMALLOC_REQUIRES(process.lock) {
    owner_was_moved(record);
    const bool placed = record->place != no_place;
    record->bound = placed && bound_mask_of(record) != user_mask_of(record);
    if (placed) record->os_node.store(process.places[record->place].os_node, std::memory_order_relaxed);
    const NodeId home = placed ? process.places[record->place].home : no_node;
    record->home.store(home.value, std::memory_order_relaxed);
    request = kernel_request_of(record);
    return record->bound || !wide;
}

void was_refused(ThreadRecord* record, long result) NUMALLOC_REQUIRES(process.lock) {
    if (record->place != no_place) note_refusal(result);
    record->bound = false;
    record->home.store(no_node.value, std::memory_order_relaxed);
}

}  // namespace

void apply(ThreadRecord* record, int tid, bool wide) {
    os::CpuMask request;
    if (!bind(record, wide, request)) return;
    if (const long result = os::set_affinity(tid, request); result < 0) was_refused(record, result);
}

void settle_runner(ThreadRecord* record) {
    place(record, current_place());
    if (process.first_place == no_place) process.first_place = record->place;
    apply(record, 0, true);
}

void move_to(ThreadRecord* record, PlaceId id) {
    leave(record);
    record->place = id;
    ++process.places[id].threads;
    if (!record->starting) apply(record, record->tid, false);
}

namespace {

// Makes a record for a running thread that has none: main, and threads that were not announced.
ThreadRecord* take_in(const os::CpuMask& kernel_mask) NUMALLOC_REQUIRES(process.lock) {
    ThreadRecord* record = process.records.take();
    if (record == nullptr) return nullptr;
    number_thread(record);
    record->tid = os::thread_id();
    record->handle = pthread_self();
    set_user_mask(record, kernel_mask);
    current = record;
    return record;
}

// An unannounced thread inherits its creator's affinity. If that is another thread's binding, copies the user's mask of
// that thread and returns true.
bool look_through_ours(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    for (const ThreadRecord* other = process.records.first(); other != nullptr; other = other->next) {
        if (other == record || !is_ours(other, record->user_mask(), process.words)) continue;
        set_user_mask(record, user_mask_of(other));
        record->whole.store(other->whole.load(std::memory_order_relaxed), std::memory_order_relaxed);
        return true;
    }
    return false;
}

void adopt() {
    os::CpuMask mask;
    if (os::get_affinity(0, mask) < 0) return;
    os::Guard guard(process.lock);
    const bool alone = process.records.first() == nullptr;
    ThreadRecord* record = take_in(mask);
    if (record == nullptr || alone) return;
    const bool narrowed = look_through_ours(record);
    place(record, no_place);
    apply(record, 0, !narrowed);
}

// Called when the calling thread runs on a node to which it is not bound. It has widened its mask to start a child
// (AsTheUserSetIt), or its mask was set by a raw system call.
void was_moved() {
    os::CpuMask mask;
    if (os::get_affinity(0, mask) <= 0) return;
    os::Guard guard(process.lock);
    if (mask == kernel_mask_of(current) || mask == user_mask_of(current)) return;
    renew_user_mask(current, 0);
}

void complain(const char* text) {
    os::Line line;
    line << text;
    os::say(line);
}

// Finds the nodes with CPUs. false if there is no memory for the tables.
bool find_places(unsigned words, const os::CpuMask& mine) {
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
        if (mine.test(cpu)) ++process.places[id].cpus;
    }
    return true;
}

void load_rules(const Places& places) {
    if (options().binding != Binding::file) return;
    if (options().binding_file == nullptr)
        complain("NUMALLOC_BINDING=file needs NUMALLOC_BINDING_FILE; threads are interleaved");
    else rules.load(options().binding_file, places, complain);
}

bool start_binding() {
    if (options().binding == Binding::none || &numalloc_interposes_threads == nullptr) return false;
    if (os::has_go_runtime()) {
        if (options().verbose) complain("Go's runtime starts children by itself: threads are not bound");
        return false;
    }
    os::CpuMask mine;
    const long mask_bytes = os::get_affinity(0, mine);
    if (mask_bytes <= 0) return false;
    const unsigned words = static_cast<unsigned>(mask_bytes) / 8;
    process.words = words;
    if (!find_places(words, mine)) return false;
    load_rules(process.places);
    if (options().verbose) {
        os::Line line;
        line << process.places.count << " nodes with CPUs: threads are bound, from the second thread on";
        os::say(line);
    }
    os::Guard guard(process.lock);
    process.records.start(words);
    ThreadRecord* const main = take_in(mine);
    if (main != nullptr) main->whole.store(is_whole(mine), std::memory_order_relaxed);
    return main != nullptr;
}

}  // namespace

constinit bool has_several_nodes = false;

void init() {
    if (os::topology().nodes() == 1) {
        // Nothing to bind, but mistakes in the file are reported as on the machine that it is for.
        Place only{};
        only.cpus = 1;
        only.os_node = static_cast<std::uint16_t>(os::topology().os_node(NodeId{0}));
        load_rules({&only, 1});
        return;
    }
    process.mode = start_binding() ? Mode::active : Mode::follow;
    has_several_nodes = true;
}

bool active() { return process.mode == Mode::active; }

NodeId home_node() {
    if (process.mode == Mode::off) return NodeId{0};
    if (process.mode == Mode::follow) return os::current_node();
    if (current == nullptr) {
        if (ended_on != no_node.value) return NodeId{ended_on};
        adopt();
        if (current == nullptr) return os::current_node();
    }
    if (current->home.load(std::memory_order_relaxed) == no_node.value) return os::current_node();
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

namespace {

// Called when a child begins or ends in `place`. If the creator's next child is to go there, notes the largest number
// of threads there.
void note_fullness(ThreadRecord* creator, PlaceId place) NUMALLOC_REQUIRES(process.lock) {
    Vacated& vacated = creator->vacated;
    if (place != no_place && place == vacated.place)
        vacated.threads = max_of(vacated.threads, process.places[place].threads);
}

// Places a thread that the calling one creates.
void place_child(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    if (current == nullptr) return place(record, no_place);
    const bool alone = current->children++ == 0;
    place(record, no_place, alone ? current->vacated : Vacated{});
    if (alone && record->place != current->vacated.place) current->vacated = {record->place, 0};
    note_fullness(current, record->place);
    record->creator = current;
    record->creator_generation = current->generation;
}

void give_record(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    if (ThreadRecord* const c = record->creator; c != nullptr && c->generation == record->creator_generation) {
        --c->children;
        note_fullness(c, record->place);
    }
    leave(record);
    process.records.give(record);
}

}  // namespace

ThreadRecord* ThreadStart::begin(const os::CpuMask* attr_mask) {
    if (current == nullptr) adopt();
    os::CpuMask mine;
    const bool known = os::get_affinity(0, mine) > 0;
    os::Guard guard(process.lock);
    if (known && current != nullptr && mine != kernel_mask_of(current)) renew_user_mask(current, 0);
    if (current != nullptr && current->place == no_place) {
        settle_runner(current);
        moved_creator_ = NodeId{current->home.load(std::memory_order_relaxed)} != no_node;
    }
    ThreadRecord* record = process.records.take();
    if (record == nullptr) return nullptr;
    record->starting = true;
    number_thread(record);
    record->mask_from_attr = attr_mask != nullptr;
    if (attr_mask != nullptr) {
        set_user_mask(record, *attr_mask);
    } else if (current != nullptr) {
        set_user_mask(record, user_mask_of(current));
        record->whole.store(current->whole.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    record->inherits_ours = attr_mask == nullptr && current != nullptr && current->bound;
    place_child(record);
    generation_ = record->generation;
    return record;
}

void ThreadStart::abandon() {
    os::Guard guard(process.lock);
    take_number_back(record_);
    give_record(record_);
}

void ThreadStart::created(pthread_t handle) {
    created_ = true;
    os::Guard guard(process.lock);
    if (record_->generation != generation_ || record_->handle_out == nullptr) return;
    record_->handle = handle;
    *record_->handle_out = handle;
    record_->handle_out = nullptr;
}

namespace {

// Returns whether the new thread, which lives at `took` now, must set its affinity to `request`. Not yet if its mask is
// in its attributes.
bool take_place(ThreadRecord* record, bool widened, const os::CpuMask* allowed, PlaceId& took, os::CpuMask& request) {
    os::Guard guard(process.lock);
    record->handle = pthread_self();
    if (record->handle_out != nullptr) *record->handle_out = record->handle;
    record->handle_out = nullptr;
    if (record->mask_from_attr) return false;
    if (allowed != nullptr && *allowed != user_mask_of(record)) {
        set_user_mask(record, *allowed);
        place(record, no_place);
    }
    took = record->place;
    return bind(record, widened || !record->inherits_ours, request);
}

}  // namespace

// Sets the affinity without the lock, or all threads that start or end would wait for it: the call may last until a
// CPU of the node runs this thread.
void enter_thread(ThreadRecord* record) {
    current = record;
    // What the cpuset allows may have changed since the creator read it.
    os::CpuMask allowed;
    const bool widened = record->whole.load(std::memory_order_relaxed) && os::set_affinity(0, every_cpu()) == 0;
    const bool known = widened && os::get_affinity(0, allowed) > 0;
    PlaceId took = no_place;
    os::CpuMask request;
    const bool sets = take_place(record, widened, known ? &allowed : nullptr, took, request);
    const long result = sets ? os::set_affinity(0, request) : 0;

    os::Guard guard(process.lock);
    record->starting = false;
    record->tid = os::thread_id();
    if (record->mask_from_attr) {
        // Another thread may have set the mask while this one set another.
        if (widened || sets) os::set_affinity(0, user_mask_of(record));
        // Reads the mask back: the kernel has cut it to the cpuset, and libc may have added default attributes.
        os::CpuMask mask;
        if (os::get_affinity(0, mask) > 0) set_user_mask(record, mask);
        apply(record, 0, true);
    } else if (record->place != took) {
        apply(record, 0, false);
    } else if (result < 0) {
        was_refused(record, result);
    }
}

void keep_record_to_the_end() { keeps_record = true; }

void heap_ended() {
    if (!keeps_record) thread_ended();
}

void thread_ended() {
    if (current == nullptr) return;
    const NodeId last{current->home.load(std::memory_order_relaxed)};
    os::Guard guard(process.lock);
    ended_on = (last == no_node ? os::current_node() : last).value;
    give_record(current);
    current = nullptr;
}

}  // namespace numalloc::placement
