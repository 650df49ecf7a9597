// binding=auto: a thread keeps its user's mask until it allocates. Then it is bound to the node where the thread before
// it ran, if its creator starts one after the other; or to the one that it runs on; or to another one, if there is
// room:
//
//   room for a thread on a node:     threads counted there < CPUs there that the thread may use
//
// Threads that a user has bound to the node count, too, and so do promised ones (owners.h). So all threads that are
// bound here can run at once, and the others, which keep the user's mask, may use every other CPU. The memory of a
// thread that is not bound is taken from the node that it runs on.
//
//                     first slow path              ends
//   user's mask ------------------------> bound ----------
//        |  ^                               ^
//        |  | no node has room              | one has
//        +--+-------------------------------+
//           after 8 slow paths, then 16 more, 32 more, ...
//
// The initial thread often allocates little once it has started others. It is bound at its 16th slow path beside them,
// and sooner if it wants much: a malloc of many bytes counts as several slow paths.
#include "base/bits.h"
#include "os/filter.h"
#include "placement/internal.h"

namespace numalloc::placement {

namespace {

namespace first_use {
constexpr std::uint16_t of_initial_thread = 16;  // slow paths until its first try
// Slow paths until the next try. Often a thread is started by one that ends at once, whose room it takes then.
constexpr std::uint16_t shortest_rest = 8;
constexpr std::uint16_t longest_rest = 32768;
// A malloc counts once, and once more for each of these, up to `most`.
constexpr Bytes bytes_of_one_more = 64 * KiB;
constexpr std::uint16_t most = of_initial_thread;
}  // namespace first_use

bool has_room(const ThreadRecord* record, PlaceId id) NUMALLOC_REQUIRES(process.lock) {
    unsigned cpus = 0;
    for (unsigned w = 0; w < process.words; ++w) cpus += count_ones(record->user_mask()[w] & process.mask_of(id)[w]);
    return process.places[id].threads < cpus;
}

// A thread that works on what another one left when it ended is placed there. Otherwise the kernel has put it where it
// runs, and knows how busy the CPUs are with other programs.
PlaceId place_with_room(const ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    const PlaceSet allowed = places_of(record);
    if (const PlaceId only = only_place_of(record); only != no_place) return only;
    PlaceSet room;
    for (unsigned i = allowed.first(); i < process.places.count; i = allowed.next(i + 1))
        if (has_room(record, PlaceId{i})) room.add(i);
    if (room.count() == 0) return no_place;
    if (record->follows != no_place && room.test(record->follows.value)) return record->follows;
    const PlaceId here = current_place();
    if (here == no_place) return choose_interleaved(process.places, room, PlaceId{0});
    return room.test(here.value) ? here : choose_interleaved(process.places, room, here);
}

void rest(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    if (record->rest == 0) process.unbound_threads.fetch_add(1, std::memory_order_relaxed);
    record->rest = static_cast<std::uint16_t>(
        min_of<unsigned>(max_of<unsigned>(2U * record->rest, first_use::shortest_rest), first_use::longest_rest));
    record->slow_paths_left.store(record->rest, std::memory_order_relaxed);
}

bool its_turn(ThreadRecord* record, Bytes wanted) {
    const std::uint16_t left = record->slow_paths_left.load(std::memory_order_relaxed);
    if (left == 0 || record->holds != 0 || process.numbers() <= 1) return false;
    const auto counts =
        static_cast<std::uint16_t>(min_of<Bytes>(1 + wanted / first_use::bytes_of_one_more, first_use::most));
    record->slow_paths_left.store(static_cast<std::uint16_t>(left - min_of(left, counts)), std::memory_order_relaxed);
    return left <= counts;
}

bool is_alone(const ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    return record->next == nullptr && record->previous == nullptr;
}

// Returns whether the thread's mask must become `request`, which binds it to `took`. `kernel`: its mask now, nullptr if
// unknown.
bool take_room(ThreadRecord* record, const Mask* kernel, PlaceId& took, Mask request) {
    os::Guard guard(process.lock);
    if (record->place != no_place) return false;  // another thread has placed it
    if (is_alone(record)) {
        record->slow_paths_left.store(first_use::of_initial_thread, std::memory_order_relaxed);
        return false;
    }
    if (kernel != nullptr && !is_forking(record) && !is_known_mask(record, *kernel)) renew_user_mask(record, 0);
    if (record->place != no_place) return false;
    took = os::filtered() ? no_place : place_with_room(record);
    if (took == no_place) {
        rest(record);
        return false;
    }
    enter(record, took);
    return bind(record, true, request);
}

void was_set(ThreadRecord* record, PlaceId took, Mask request, long result) {
    os::Guard guard(process.lock);
    // Another thread may have changed its place or its user's mask in the meantime.
    if (record->place != took || !is_kernel_request(record, request)) return apply(record, 0, false);
    if (result >= 0) return note_bound(record, false);
    was_refused(record, result);
    leave(record);
    rest(record);
}

}  // namespace

void wait_for_first_use(ThreadRecord* record) {
    record->rest = 0;
    const std::uint16_t left = record->keeps_mask ? 0 : record->number == 0 ? first_use::of_initial_thread : 1;
    record->slow_paths_left.store(left, std::memory_order_relaxed);
}

bool bind_at_first_use(ThreadRecord* record, Bytes wanted) {
    if (!process.at_first_use || record->starting || !its_turn(record, wanted)) return false;
    if (!is_own(record)) {
        record->slow_paths_left.store(1, std::memory_order_relaxed);  // it is the thread's turn, not this child's
        return false;
    }
    PlaceId took = no_place;
    NUMALLOC_MASK(kernel);
    NUMALLOC_MASK(request);
    const bool known = get_affinity(0, kernel) > 0;
    // Sets the mask without the lock: the call may last until a CPU of the node runs this thread.
    if (take_room(record, known ? &kernel : nullptr, took, request))
        was_set(record, took, request, set_affinity(0, request));
    return record->home.load(std::memory_order_relaxed) != no_node.value;
}

}  // namespace numalloc::placement
