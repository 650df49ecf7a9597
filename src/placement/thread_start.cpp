// A thread's life in placement: its creation, its first steps and its end.
#include "os/affinity.h"
#include "os/signal.h"
#include "placement/internal.h"

namespace numalloc::placement {

using detail::current;
using detail::ended_on;

namespace {

NUMALLOC_THREAD_LOCAL bool keeps_record = false;  // keep_record_to_the_end()

// Called when a child begins or ends in `place`. If the creator's next child is to go there, notes the largest number
// of threads there.
void note_fullness(ThreadRecord* creator, PlaceId place) NUMALLOC_REQUIRES(process.lock) {
    Vacated& vacated = creator->vacated;
    if (place != no_place && place == vacated.place)
        vacated.threads = max_of(vacated.threads, process.places[place].threads);
}

// Places a thread that the calling one creates.
void place_child(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    if (current == nullptr) return place(record);
    const bool alone = current->children++ == 0;
    if (process.at_first_use) {
        if (alone) record->follows = current->vacated.place;
        place(record);
    } else {
        place(record, alone ? current->vacated : Vacated{});
        if (alone && record->place != current->vacated.place) current->vacated = {record->place, 0};
        note_fullness(current, record->place);
    }
    record->creator = current;
    record->creator_generation = current->generation;
}

void give_record(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    if (ThreadRecord* const c = record->creator; c != nullptr && c->generation == record->creator_generation) {
        --c->children;
        if (process.at_first_use && record->place != no_place) c->vacated.place = record->place;
        note_fullness(c, record->place);
    }
    leave(record);
    process.records.give(record);
}

// A signal's handler may have ended earlier threads of this handle before they came to enter_thread().
bool has_ended_unstarted(const ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    const int tid = record->tid_at_start;
    return record->starting && tid != 0 && !os::has_thread(tid);
}

void set_handle(ThreadRecord* record, pthread_t handle) NUMALLOC_REQUIRES(process.lock) {
    process.records.set_handle(record, 0);
    for (;;) {
        ThreadRecord* const earlier = process.records.find(handle);
        if (earlier == nullptr || !has_ended_unstarted(earlier)) break;
        give_record(earlier);
    }
    process.records.set_handle(record, handle);
}

}  // namespace

ThreadRecord* ThreadStart::begin(const os::CpuMask* attr_mask) {
    if (current == nullptr) adopt();
    NUMALLOC_MASK(mine);
    const bool known = get_affinity(0, mine) > 0;
    os::Guard guard(process.lock);
    if (known && current != nullptr && !is_expected_mask(current, mine)) renew_user_mask(current, 0);
    if (process.at_first_use) {
        if (current != nullptr && current->place == no_place && only_place_of(current) != no_place) {
            place(current);
            apply(current, 0, true);
        }
        // Serial interleaving ends (interleave=serial), so the creator's heap has another home.
        moved_creator_ = process.numbers() == 1;
    } else if (current != nullptr && current->place == no_place) {
        settle_runner(current);
        moved_creator_ = NodeId{current->home.load(std::memory_order_relaxed)} != no_node;
    }
    ThreadRecord* record = process.records.take();
    if (record == nullptr) return nullptr;
    record->starting = true;
    number_thread(record);
    record->mask_from_attr = attr_mask != nullptr;
    if (attr_mask != nullptr) {
        set_user_mask(record, attr_mask->data());
    } else if (current != nullptr) {
        set_user_mask(record, user_mask_of(current));
        record->whole.store(current->whole.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    record->inherits_ours = attr_mask == nullptr && current != nullptr && current->bound;
    record->asks_cpuset = !process.at_first_use || record->inherits_ours;
    place_child(record);
    generation_ = record->generation;
    return record;
}

void ThreadStart::abandon() {
    if (is_in_child()) return;
    os::Guard guard(process.lock);
    take_number_back(record_);
    give_record(record_);
}

// A signal's handler may have forked since: fork_child() has dropped the record.
bool ThreadStart::is_in_child() const { return os::fork_gate.generation() != fork_generation_; }

// Under the lock a thread that has not run yet cannot end, unless a signal ends it. Nobody can have joined it even
// then, because nobody knows its handle yet.
void ThreadStart::created(pthread_t handle, bool may_ask) {
    created_ = true;
    os::Guard guard(process.lock);
    if (record_->generation != generation_ || record_->handle_out == nullptr) return;
    may_ask = may_ask && !is_in_child();
    const int tid = may_ask ? os::thread_id_of(handle) : 0;
    *record_->handle_out = handle;
    record_->handle_out = nullptr;
    if (is_in_child()) return;
    set_handle(record_, handle);
    record_->tid_at_start = tid;
    if (may_ask && tid == 0) give_record(record_);
}

namespace {

// Whether `kernel` is the mask of a creator that another thread has bound since ThreadStart::begin().
bool is_creators(const ThreadRecord* record, Mask kernel) NUMALLOC_REQUIRES(process.lock) {
    const ThreadRecord* const c = record->creator;
    return c != nullptr && c->generation == record->creator_generation && is_bound_mask(c, kernel);
}

// Returns whether the new thread, which lives at `took` now, must set its affinity to `request`. Not yet if its mask is
// in its attributes. `kernel`: its mask now, nullptr if unknown. `widened`: that is all that the cpuset allows.
bool take_place(ThreadRecord* record, bool widened, const Mask* kernel, PlaceId& took, Mask request) {
    os::Guard guard(process.lock);
    set_handle(record, pthread_self());
    if (record->handle_out != nullptr) *record->handle_out = record->handle;
    record->handle_out = nullptr;
    if (record->mask_from_attr) return false;
    bool ours = record->inherits_ours;
    if (widened && kernel != nullptr && !is_user_mask(record, *kernel)) {
        set_user_mask(record, *kernel);
        place(record);
    } else if (!widened && kernel != nullptr) {
        ours = ours || is_creators(record, *kernel);
    }
    took = record->place;
    return bind(record, widened || !ours, request);
}

}  // namespace

// Sets the affinity without the lock, or all threads that start or end would wait for it: the call may last until a
// CPU of the node runs this thread.
void enter_thread(ThreadRecord* record) {
    current = record;
    // What the cpuset allows may have changed since the creator read it.
    NUMALLOC_MASK(kernel);
    const bool asks = record->asks_cpuset && record->whole.load(std::memory_order_relaxed);
    const bool widened = asks && allow_every_cpu(0);
    const bool known = (widened || process.at_first_use) && get_affinity(0, kernel) > 0;
    PlaceId took = no_place;
    NUMALLOC_MASK(request);
    const bool sets = take_place(record, widened, known ? &kernel : nullptr, took, request);
    const long result = sets ? set_affinity(0, request) : 0;
    const int tid = os::thread_id();

    os::Guard guard(process.lock);
    record->starting = false;
    process.records.set_tid(record, tid);
    if (record->mask_from_attr) {
        // Another thread may have set the mask while this one set another.
        if (widened || sets) set_affinity(0, user_mask_of(record));
        // Reads the mask back: the kernel has cut it to the cpuset, and libc may have added default attributes.
        NUMALLOC_MASK(mask);
        if (get_affinity(0, mask) > 0) set_user_mask(record, mask);
        apply(record, 0, true);
    } else if (record->place != took || !is_kernel_request(record, request)) {
        apply(record, 0, false);
    } else if (result < 0) {
        was_refused(record, result);
    } else {
        note_bound(record, false);
    }
}

void keep_record_to_the_end() { keeps_record = true; }

void heap_ended() {
    if (!keeps_record) thread_ended();
}

void thread_ended() {
    if (current == nullptr) return;
    const os::NoSignals no_signals;
    const NodeId last{current->home.load(std::memory_order_relaxed)};
    os::Guard guard(process.lock);
    ended_on = (last == no_node ? os::current_node() : last).value;
    give_record(current);
    current = nullptr;
}

RecordName record_of_caller() { return {current, current == nullptr ? 0 : current->generation}; }

void died_unnoticed(RecordName name) {
    if (name.record == nullptr) return;
    os::Guard guard(process.lock);
    if (name.record->generation == name.generation) give_record(name.record);
}

}  // namespace numalloc::placement
