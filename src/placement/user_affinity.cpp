// Affinity as the user sees it: the results of sched_getaffinity and its family, the effect of sched_setaffinity on a
// thread's node, and what children inherit.
#include <cerrno>
#include <cstring>

#include "base/bits.h"
#include "os/topology.h"
#include "placement/internal.h"

namespace numalloc::placement {

using detail::current;

namespace {

constexpr Bytes word_bytes = sizeof(std::uint64_t);

// If the kernel's answer of `got` bytes is our mask, replaces it by the user's.
void hide(const ThreadRecord* record, void* mask, long got) {
    std::uint64_t seen[os::CpuMask::words];
    const Bytes bytes = static_cast<Bytes>(got);
    if (bytes > sizeof seen) return;
    std::memcpy(seen, mask, bytes);
    if (!is_ours(record, seen, bytes / word_bytes)) return;
    std::memcpy(mask, record->user_mask(), min_of(bytes, process.words * word_bytes));
}

// The record of the thread if it is the caller itself, without the lock. Between vfork and exec the caller is another
// task that uses its parent's record: hide() therefore compares with the kernel's mask.
ThreadRecord* own_record(int tid) {
    return current != nullptr && (tid == 0 || tid == current->tid) ? current : nullptr;
}

// Whether it has a kernel ID or will get one. A thread that starts after a filter (os/filter.h) has none.
bool has_number(const ThreadRecord* record) { return record->starting || record->tid != 0; }

NodeId home_of_caller(const ThreadRecord* record) {
    const NodeId home{record->home.load(std::memory_order_relaxed)};
    return home == no_node ? os::current_node() : home;
}

}  // namespace

void follow_user(ThreadRecord* record) {
    os::CpuMask mask;
    if (os::get_affinity(record->tid, mask) <= 0) return;
    set_user_mask(record, mask);
    record->bound = false;
    // A thread that runs alone stays unbound; its memory follows it to the new CPUs anyway.
    if (record->place == no_place) return;
    place(record, no_place);
    apply(record, record->tid, true);
}

long get_affinity(int tid, std::size_t bytes, void* mask) {
    const long got = os::get_affinity(tid, bytes, mask);
    if (got <= 0 || process.mode != Mode::active) return got;
    if (const ThreadRecord* self = own_record(tid); self != nullptr) {
        hide(self, mask, got);
    } else if (tid > 0) {
        os::Guard guard(process.lock);
        if (const ThreadRecord* record = process.records.find(tid); record != nullptr) hide(record, mask, got);
    }
    return got;
}

long set_affinity(int tid, std::size_t bytes, const void* mask, NodeId* node) {
    *node = no_node;
    if (process.mode != Mode::active) {
        const long result = os::set_affinity(tid, bytes, mask);
        if (result == 0 && process.mode == Mode::follow && (tid == 0 || tid == os::thread_id()))
            *node = os::current_node();
        return result;
    }
    os::Guard guard(process.lock);
    const long result = os::set_affinity(tid, bytes, mask);
    if (result < 0) return result;
    ThreadRecord* record = tid == 0 ? current : process.records.find(tid);
    if (record == nullptr) return result;
    follow_user(record);
    if (record == current) *node = home_of_caller(record);
    return result;
}

long get_affinity(pthread_t thread, std::size_t bytes, void* mask) {
    if (process.mode != Mode::active) return unknown_thread;
    if (current != nullptr && thread == current->handle) return get_affinity(0, bytes, mask);
    os::Guard guard(process.lock);
    const ThreadRecord* record = process.records.find(thread);
    if (record == nullptr || !has_number(record)) return unknown_thread;
    if (record->starting) {
        // Its ID is not known yet, but it will have this mask.
        const Bytes whole = process.words * word_bytes;
        if (bytes < whole) return -EINVAL;
        std::memcpy(mask, record->user_mask(), whole);
        return static_cast<long>(whole);
    }
    const long got = os::get_affinity(record->tid, bytes, mask);
    if (got > 0) hide(record, mask, got);
    return got;
}

long set_affinity(pthread_t thread, std::size_t bytes, const void* mask, NodeId* node,
                  int (*libc_set)(pthread_t, std::size_t, const cpu_set_t*)) {
    *node = no_node;
    if (process.mode == Mode::follow && thread == pthread_self()) return set_affinity(0, bytes, mask, node);
    if (process.mode != Mode::active) return unknown_thread;
    os::Guard guard(process.lock);
    ThreadRecord* record = process.records.find(thread);
    if (record == nullptr || !has_number(record)) return unknown_thread;
    const long result = record->starting ? -libc_set(thread, bytes, static_cast<const cpu_set_t*>(mask))
                                         : os::set_affinity(record->tid, bytes, mask);
    if (result < 0) return result;
    if (record->starting) {
        // It binds itself by this mask when it runs, and reads back what a cpuset left of the mask.
        os::CpuMask wanted;
        std::memcpy(wanted.data(), mask, min_of(bytes, sizeof wanted));
        set_user_mask(record, wanted);
        record->mask_from_attr = true;
        record->inherits_ours = false;
        place(record, no_place);
    } else {
        follow_user(record);
        if (record == current) *node = home_of_caller(record);
    }
    return result;
}

bool runs_under_ours() {
    os::CpuMask mask;
    return current != nullptr && current->bound && os::get_affinity(0, mask) > 0 &&
           is_ours(current, mask.data(), os::CpuMask::words);
}

AsTheUserSetIt::AsTheUserSetIt() { widened_ = runs_under_ours() && os::set_affinity(0, user_mask_of(current)) == 0; }

AsTheUserSetIt::~AsTheUserSetIt() {
    if (widened_ && current->bound) os::set_affinity(0, bound_mask_of(current));
}

void AsTheUserSetIt::keep() {
    if (!widened_) return;
    os::Guard guard(process.lock);
    leave(current);
    current->bound = false;
    current->home.store(no_node.value, std::memory_order_relaxed);
}

void fork_prepare() {
    if (process.mode != Mode::active) return;
    process.fork_widened = runs_under_ours() && os::set_affinity(0, user_mask_of(current)) == 0;
}

void fork_parent() {
    if (process.mode != Mode::active) return;
    if (process.fork_widened) os::set_affinity(0, bound_mask_of(current));
}

void fork_child() {
    if (process.mode != Mode::active) return;
    for (ThreadRecord* record = process.records.first(); record != nullptr;) {
        ThreadRecord* next = record->next;
        leave(record);
        if (record != current) process.records.give(record);
        record = next;
    }
    process.next_number.store(0, std::memory_order_relaxed);
    for (unsigned i = 0; i < process.places.count; ++i) process.places[PlaceId{i}].threads = 0;
    process.promised_up_to = 0;
    process.first_place = no_place;
    if (current != nullptr) {
        current->tid = os::thread_id();
        current->children = 0;
        number_thread(current);
        if (os::CpuMask mask; !process.fork_widened && os::get_affinity(0, mask) > 0) set_user_mask(current, mask);
        current->bound = false;
        current->home.store(no_node.value, std::memory_order_relaxed);
    }
}

}  // namespace numalloc::placement
