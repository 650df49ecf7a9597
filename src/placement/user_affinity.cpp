// Affinity as the user sees it: the results of sched_getaffinity and its family, the effect of sched_setaffinity on a
// thread's node, and what children inherit.
#include <cerrno>
#include <cstring>

#include "base/bits.h"
#include "os/brief_wait.h"
#include "os/filter.h"
#include "os/fork_gate.h"
#include "os/signal.h"
#include "os/topology.h"
#include "placement/internal.h"

namespace numalloc::placement {

using detail::current;

namespace {

constexpr Bytes word_bytes = sizeof(std::uint64_t);

// The ID of the child between vfork and exec that has set its mask itself, and runs as its parent's thread: the mask
// is shown to it, and exec keeps it.
NUMALLOC_THREAD_LOCAL int set_by_child = 0;
bool has_set_its_mask() { return set_by_child != 0 && set_by_child == os::thread_id(); }

// If the kernel's answer of `got` bytes is our mask, replaces it by the user's.
void hide(const ThreadRecord* record, void* mask, long got) {
    const Bytes bytes = static_cast<Bytes>(got);
    NUMALLOC_MASK(seen);
    seen.copy(mask, bytes);
    if (is_bound_mask(record, seen)) std::memcpy(mask, record->user_mask(), min_of(bytes, process.words * word_bytes));
}

// The record of the thread if it is the caller itself, without the lock. Between vfork and exec the caller is another
// task that uses its parent's record: hide() therefore compares with the kernel's mask.
ThreadRecord* own_record(int tid) {
    return current != nullptr && (tid == 0 || tid == current->tid) ? current : nullptr;
}

// False in a signal handler that interrupted code under a lock, which may be this one. (Handlers may set masks: glibc
// calls sched_setaffinity() safe there.)
//
// Such calls block signals while they hold the lock, or a handler that leaves by siglongjmp() would leave it held.
bool may_lock() { return os::ForkGate::waits(); }

// A thread that ended by a raw system call leaves its record, and its ID may be another process's since.
bool is_there(const ThreadRecord* record) { return record->tid == 0 || os::has_thread(record->tid); }
ThreadRecord* find(int tid) NUMALLOC_REQUIRES(process.lock) {
    ThreadRecord* const record = process.records.find(tid);
    return record != nullptr && is_there(record) ? record : nullptr;
}

// The user's mask of another thread.
long renewed_mask_of(ThreadRecord* record, std::size_t bytes, void* mask) NUMALLOC_REQUIRES(process.lock) {
    renew_if_foreign(record, record->tid);
    const long got = os::get_affinity(record->tid, bytes, mask);
    if (got > 0) hide(record, mask, got);
    return got;
}

// Whether it has a kernel ID or will get one. A thread that starts after a filter (os/filter.h) has none.
bool has_number(const ThreadRecord* record) { return record->starting || record->tid != 0; }

NodeId home_of_caller(const ThreadRecord* record) {
    const NodeId home{record->home.load(std::memory_order_relaxed)};
    return home == no_node ? os::current_node() : home;
}

// Follows the mask that the user has just set for a running thread. The thread may have set its own one since, without
// the lock (here, first_use.cpp, thread_start.cpp): then the user's is set again. The kernel may have cut it, to the
// cpuset.
void follow_set(ThreadRecord* record, std::size_t bytes, const void* mask) NUMALLOC_REQUIRES(process.lock) {
    NUMALLOC_MASK(wanted);
    NUMALLOC_MASK(kernel);
    NUMALLOC_MASK(first);
    wanted.copy(mask, bytes);
    const auto reads = [&] { return get_affinity(record->tid, kernel) > 0; };
    const auto sets_and_reads = [&] { return os::set_affinity(record->tid, bytes, mask) >= 0 && reads(); };
    if (!reads()) return;
    if (kernel != wanted) {
        first.copy(kernel.data(), process.words * word_bytes);
        if (!sets_and_reads()) return;
        if (kernel != first && !sets_and_reads()) return;
    }
    follow_user(record, kernel);
}

// The thread has its user's mask in the kernel, and keeps it.
void unbind(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    leave(record);
    record->keeps_mask = true;
    wait_for_first_use(record);
    record->home.store(no_node.value, std::memory_order_relaxed);
}

// A thread that has not run yet may have inherited its creator's binding. After a filter it could not widen its mask.
void widen_starting(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    const int tid = record->tid_at_start;
    if (!record->inherits_ours || tid == 0 || !os::has_thread(tid) || process.records.find(tid) != nullptr) return;
    if (set_user_request(record, tid) == 0) record->inherits_ours = false;
}

}  // namespace

bool is_own(const ThreadRecord* record) { return record->tid == 0 || record->tid == os::thread_id(); }

// Takes over what was changed from outside before it reads the mask: the thread may be bound by another one afterwards,
// or not at all.
long get_affinity(int tid, std::size_t bytes, void* mask) {
    if (process.mode != Mode::active) return os::get_affinity(tid, bytes, mask);
    if (ThreadRecord* const self = own_record(tid); self != nullptr) {
        const bool may_differ = self->bound || self->whole.load(std::memory_order_relaxed);
        if (may_differ && !self->starting && is_own(self) && !may_be_wide(self) && may_lock()) {
            const os::NoSignals no_signals;
            os::Guard guard(process.lock);
            renew_user_mask(self, 0);
        }
        const long got = os::get_affinity(tid, bytes, mask);
        if (got > 0 && !has_set_its_mask()) hide(self, mask, got);
        return got;
    }
    if (tid <= 0 || !may_lock()) return os::get_affinity(tid, bytes, mask);
    const os::NoSignals no_signals;
    os::Guard guard(process.lock);
    ThreadRecord* const record = find(tid);
    return record == nullptr ? os::get_affinity(tid, bytes, mask) : renewed_mask_of(record, bytes, mask);
}

long set_affinity(int tid, std::size_t bytes, const void* mask, NodeId* node, SetAffinity while_unbound) {
    *node = no_node;
    if (process.mode != Mode::active) {
        const long result = while_unbound(tid, bytes, mask);
        if (result == 0 && process.mode == Mode::follow && (tid == 0 || tid == os::thread_id()))
            *node = os::current_node();
        return result;
    }
    // Found out later, as if another process had set it.
    if (!may_lock()) return os::set_affinity(tid, bytes, mask);
    if (current != nullptr && !is_own(current) && (tid == 0 || tid == os::thread_id())) {
        const long result = os::set_affinity(tid, bytes, mask);
        if (result >= 0) set_by_child = os::thread_id();
        return result;
    }
    ThreadRecord* self = own_record(tid);
    if (self != nullptr && !is_own(self)) self = nullptr;
    if (self != nullptr || tid == 0) {
        // Without the lock: the call lasts until a CPU of the mask runs this thread.
        const long result = os::set_affinity(tid, bytes, mask);
        if (result < 0 || self == nullptr) return result;
        const os::NoSignals no_signals;
        os::Guard guard(process.lock);
        follow_set(self, bytes, mask);
        *node = home_of_caller(self);
        return result;
    }
    const os::NoSignals no_signals;
    os::Guard guard(process.lock);
    const long result = os::set_affinity(tid, bytes, mask);
    if (result < 0) return result;
    ThreadRecord* const record = find(tid);
    if (record == nullptr) return result;
    follow_set(record, bytes, mask);
    if (record == current) *node = home_of_caller(record);
    return result;
}

long get_affinity(pthread_t thread, std::size_t bytes, void* mask) {
    if (process.mode != Mode::active) return unknown_thread;
    if (current != nullptr && thread == current->handle) return get_affinity(0, bytes, mask);
    if (!may_lock()) return unknown_thread;
    const os::NoSignals no_signals;
    os::Guard guard(process.lock);
    ThreadRecord* const record = process.records.find(thread);
    if (record == nullptr || !has_number(record)) return unknown_thread;
    if (record->starting) {
        // Its ID is not known yet, but it will have this mask.
        const Bytes whole = process.words * word_bytes;
        if (bytes < whole) return -EINVAL;
        std::memcpy(mask, record->user_mask(), whole);
        return static_cast<long>(whole);
    }
    return renewed_mask_of(record, bytes, mask);
}

long set_affinity(pthread_t thread, std::size_t bytes, const void* mask, NodeId* node, LibcSetAffinity libc_set) {
    *node = no_node;
    if (process.mode == Mode::follow && thread == pthread_self())
        return set_affinity(0, bytes, mask, node, os::set_affinity);
    if (process.mode != Mode::active) return unknown_thread;
    if (current != nullptr && thread == current->handle && current->tid != 0 && is_own(current))
        return set_affinity(0, bytes, mask, node, os::set_affinity);
    if (!may_lock()) return unknown_thread;
    const os::NoSignals no_signals;
    os::Guard guard(process.lock);
    ThreadRecord* record = process.records.find(thread);
    if (record == nullptr || !has_number(record)) return unknown_thread;
    const long result = record->starting ? -libc_set(thread, bytes, static_cast<const cpu_set_t*>(mask))
                                         : os::set_affinity(record->tid, bytes, mask);
    if (result < 0) return result;
    if (record->starting) {
        // It binds itself by this mask when it runs, and reads back what a cpuset left of the mask.
        NUMALLOC_MASK(wanted);
        wanted.copy(mask, bytes);
        set_user_mask(record, wanted);
        record->whole.store(false, std::memory_order_relaxed);
        record->mask_from_attr = true;
        record->inherits_ours = false;
        place(record);
    } else {
        follow_set(record, bytes, mask);
        if (record == current) *node = home_of_caller(record);
    }
    return result;
}

long call_unbound(int tid, long (*call)(const void*), const void* argument) {
    if (process.mode != Mode::active || !may_lock()) return -EPERM;
    const os::NoSignals no_signals;
    os::Guard guard(process.lock);
    ThreadRecord* const record = tid == 0 ? current : find(tid);
    if (record == nullptr || (tid == 0 && !is_own(record))) return -EPERM;
    const bool bound = record->bound;
    if (!bound && !is_forking(record)) return -EPERM;
    if (bound && set_user_request(record, tid) < 0) return -EPERM;
    const long result = call(argument);
    if (result >= 0) unbind(record);
    else if (bound) set_bound_request(record, tid);
    return result;
}

long call_with_users_masks(long (*call)(const void*), const void* argument) {
    if (process.mode != Mode::active) return call(argument);
    os::Guard guard(process.lock);
    const auto for_each = [](auto act) NUMALLOC_NO_THREAD_SAFETY_ANALYSIS {
        for (ThreadRecord* record = process.records.first(); record != nullptr; record = record->next) act(record);
    };
    for_each([](ThreadRecord* record) NUMALLOC_NO_THREAD_SAFETY_ANALYSIS {
        if (record->starting) return widen_starting(record);
        if (!record->bound || !is_there(record)) return;
        renew_if_foreign(record, record->tid);
        if (record->bound) set_user_request(record, record->tid);
    });
    const long result = call(argument);
    for_each([](ThreadRecord* record) NUMALLOC_NO_THREAD_SAFETY_ANALYSIS {
        if (os::filtered() && (record->bound || record->starting)) unbind(record);
        else if (record->bound && !record->starting && is_there(record)) set_bound_request(record, record->tid);
    });
    return result;
}

AsTheUserSetIt::AsTheUserSetIt() : widened_(!has_set_its_mask() && widen(current)) {}

FirstUseHold::FirstUseHold() : record_(current != nullptr && is_own(current) ? current : nullptr) {
    if (record_ != nullptr) ++record_->holds;
}

FirstUseHold::~FirstUseHold() {
    if (record_ != nullptr) --record_->holds;
}

namespace {

// Whose mask the caller has in the kernel. `other`: ours, or one that another process has set.
enum class Whose { unknown, users, other };
Whose whose_mask(const ThreadRecord* self) {
    NUMALLOC_MASK(kernel);
    if (get_affinity(0, kernel) <= 0) return Whose::unknown;
    return is_user_mask(self, kernel) ? Whose::users : Whose::other;
}
void bind_unbound(ThreadRecord* self) NUMALLOC_REQUIRES(process.lock) {
    NUMALLOC_MASK(request);
    if (!bind(self, true, request)) return;
    if (const long result = set_affinity(0, request); result < 0) was_refused(self, result);
}

// Binds the caller to its place after a fork. `self->bound`: the fork began without the lock.
void bind_again(ThreadRecord* self) NUMALLOC_REQUIRES(process.lock) {
    if (self->bound) {
        set_bound_request(self, 0);
        return;
    }
    const Whose whose = whose_mask(self);
    if (whose == Whose::other) renew_user_mask(self, 0);
    else if (whose == Whose::users) bind_unbound(self);
}

}  // namespace

// The child, or another process, may have set the caller's mask meanwhile, or another thread may have bound it. (In a
// child of vfork the record is the parent's.)
AsTheUserSetIt::~AsTheUserSetIt() {
    if (!widened_ || !current->bound) return;
    if (whose_mask(current) != Whose::other || !is_own(current) || !may_lock()) {
        set_bound_request(current, 0);
        return;
    }
    const os::NoSignals no_signals;
    os::Guard guard(process.lock);
    if (!current->bound) return;
    if (whose_mask(current) == Whose::other) renew_user_mask(current, 0);
    else set_bound_request(current, 0);
}

namespace {

// For placement's lock around a fork. In a signal handler that interrupted the heap, and if the holder of the lock does
// not go on, the fork does without.
bool lock_for_fork() NUMALLOC_TRIES_TO_ACQUIRE(true, process.lock) {
    return os::ForkGate::waits() && process.lock.lock_within(os::few_sleeps);
}

// Gives the caller its user's mask until end_fork(). Returns false if a fork in progress has done that.
bool begin_fork() {
    ThreadRecord* const self = current;
    if (self == nullptr || is_forking(self)) return false;
    if (!lock_for_fork()) {
        widen(self);
        self->forking.store(true, std::memory_order_relaxed);
        return true;
    }
    self->forking.store(true, std::memory_order_relaxed);
    if (widen(self)) {
        self->bound = false;
    } else if (self->bound && whose_mask(self) != Whose::unknown) {
        self->bound = false;  // another process has set its mask
        renew_user_mask(self, 0);
    }
    process.lock.unlock();
    return true;
}

bool take_kernels_mask(ThreadRecord* self) {
    NUMALLOC_MASK(kernel);
    if (get_affinity(0, kernel) <= 0) return false;
    set_user_mask(self, kernel);
    return true;
}

// In the parent.
void end_fork() {
    ThreadRecord* const self = current;
    const bool locked = lock_for_fork();
    self->forking.store(false, std::memory_order_relaxed);
    if (locked) {
        bind_again(self);
        process.lock.unlock();
    } else if (self->bound) {
        set_bound_request(self, 0);
    } else {
        self->left_wide.store(true, std::memory_order_relaxed);
    }
}

}  // namespace

void bind_left_wide(ThreadRecord* self) {
    os::Guard guard(process.lock);
    if (self->left_wide.exchange(false, std::memory_order_relaxed) && is_own(self)) bind_again(self);
}

void fork_prepare() {
    if (process.mode != Mode::active) return;
    const unsigned fork = ++process.forks;
    if (begin_fork()) process.wide_fork = fork;
    if (current != nullptr) ++current->holds;
}

void fork_parent() {
    if (process.mode != Mode::active || process.forks == 0) return;
    if (process.wide_fork == process.forks) {
        process.wide_fork = 0;
        end_fork();
    }
    --process.forks;
    if (current != nullptr && current->holds != 0) --current->holds;  // its record may be newer
}

void fork_child() {
    if (process.mode != Mode::active) return;
    if (process.forks != 0) --process.forks;
    if (process.wide_fork > process.forks) process.wide_fork = 0;
    process.records.keep_only(current);
    process.next_number.store(0, std::memory_order_relaxed);
    for (unsigned i = 0; i < process.places.count; ++i) process.places[PlaceId{i}].threads = 0;
    process.promised_up_to = 0;
    process.first_place = no_place;
    if (current == nullptr) return;
    set_by_child = 0;
    widen(current);  // if the fork began without the lock, another thread may have bound it since
    current->place = no_place;
    current->bound = false;
    current->left_wide.store(false, std::memory_order_relaxed);
    if (process.forks == 0) current->forking.store(false, std::memory_order_relaxed);
    current->creator = nullptr;
    current->children = 0;
    process.records.set_tid(current, os::thread_id());
    process.records.set_handle(current, pthread_self());
    number_thread(current);
    if (current->holds != 0) --current->holds;
    wait_for_first_use(current);
    current->home.store(no_node.value, std::memory_order_relaxed);
    // Another thread may have been changing the record's mask. The kernel's is the user's.
    if (take_kernels_mask(current) && current->whole.load(std::memory_order_relaxed)) renew_user_mask(current, 0);
}

}  // namespace numalloc::placement
