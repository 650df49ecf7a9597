// A record for each thread, in slabs outside of the heap, because it must exist before the thread's first malloc and
// after its last free. A record is reused but never unmapped: a stale pointer reads an old record and does not fault.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "base/bits.h"
#include "base/ids.h"
#include "os/affinity.h"
#include "placement/choose_place.h"

namespace numalloc::placement {

struct ThreadRecord {
    // The node to allocate from; no_node while the thread is not bound: then the node that it runs on.
    std::atomic<std::uint16_t> home{no_node.value};
    // The kernel's number of the node that it is bound to: it runs there unless its affinity was changed from outside.
    std::atomic<std::uint16_t> os_node{0};
    PlaceId place = no_place;  // where it is counted as a thread; no_place: nowhere
    bool bound = false;        // its affinity in the kernel is narrower than the user's, and must be hidden
    // The user has set no mask: user_mask() is all that the cpuset allowed when it was last read. Written under the
    // lock.
    std::atomic<bool> whole{false};
    bool starting = false;  // created, but has not run yet
    bool mask_from_attr = false;
    // While its fork is in progress it has its user's mask, whatever its place. Set by the thread itself.
    std::atomic<bool> forking{false};
    // A fork has ended without placement's lock: the thread is to be bound again at its next slow path.
    std::atomic<bool> left_wide{false};
    bool keeps_mask = false;  // not bound any more: it has a deadline, or has installed a seccomp filter
    // Slow paths left before the next try to bind it, which succeeds if a CPU is left; 0: it is not tried.
    std::atomic<std::uint16_t> slow_paths_left{1};
    std::uint16_t rest = 0;      // slow paths between two tries
    std::uint16_t holds = 0;     // FirstUseHold: while there are some it is not bound at its first use; its own
    bool inherits_ours = false;  // starts with its creator's binding
    bool asks_cpuset = false;    // at its start, unless it asks later; constant
    unsigned number = 0;         // order of creation; main is 0
    int owner = -1;              // the same, or the number that the thread chose: owners.h
    int tid = 0;                 // 0 while starting, and for ever if it started after a filter (os/filter.h)
    int tid_at_start = 0;        // while starting, from when its creator knows it; 0 if that may not ask
    pthread_t handle{};
    std::uint64_t generation = 0;  // distinguishes the thread from a later one with the same record

    // A thread often starts a worker after its earlier ones have ended. The worker then runs where the first of those
    // ran, because their memory lies there.
    ThreadRecord* creator = nullptr;  // valid while it has that generation
    std::uint64_t creator_generation = 0;
    unsigned children = 0;       // that have not ended
    Vacated vacated;             // place of the last child that was started while no other ran
    PlaceId follows = no_place;  // binding=auto: where the thread before it ran, if it is started while no other runs

    // For the trampoline that starts the thread.
    pthread_t* handle_out = nullptr;
    void (*start)() = nullptr;  // the user's function, cast
    void* argument = nullptr;

    ThreadRecord* next = nullptr;
    ThreadRecord* previous = nullptr;
    // Of Records' indices.
    ThreadRecord* next_of_tid = nullptr;
    ThreadRecord* next_of_handle = nullptr;
    ThreadRecord* next_of_owner = nullptr;

    // The affinity that the user set, Records::words() words. The kernel's is narrower while `bound`.
    std::uint64_t* user_mask() { return reinterpret_cast<std::uint64_t*>(this + 1); }
    const std::uint64_t* user_mask() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
};

// Finds records by a key; those with the key `none` are not in the index. With 10,000 threads a bucket has two or
// three.
template <class Key, Key none, Key ThreadRecord::* key, ThreadRecord* ThreadRecord::* link>
class RecordIndex {
public:
    static constexpr unsigned bits = 12;
    static constexpr Bytes table_bytes = sizeof(void*) << bits;

    // `table`: zeroed memory. Called before any other function.
    void start(void* table) { bucket_ = static_cast<ThreadRecord**>(table); }

    void set(ThreadRecord* record, Key k) {
        remove(record);
        record->*key = k;
        if (k == none) return;
        record->*link = bucket_[bucket_of(k)];
        bucket_[bucket_of(k)] = record;
    }
    void remove(ThreadRecord* record) {
        if (record->*key == none) return;
        ThreadRecord** at = &bucket_[bucket_of(record->*key)];
        while (*at != record) at = &((*at)->*link);
        *at = record->*link;
        record->*key = none;
    }
    // The newest with this key.
    ThreadRecord* find(Key k) const {
        if (k == none) return nullptr;
        ThreadRecord* record = bucket_[bucket_of(k)];
        while (record != nullptr && record->*key != k) record = record->*link;
        return record;
    }
    // Handles are addresses, at equal distances: a multiplication spreads them (Fibonacci hashing, Knuth).
    static unsigned bucket_of(Key k) {
        return static_cast<unsigned>((static_cast<std::uint64_t>(k) * 0x9E3779B97F4A7C15) >> (64 - bits));
    }

private:
    ThreadRecord** bucket_ = nullptr;  // [1 << bits]
};

// All records. Not thread-safe: placement's lock guards them.
class Records {
public:
    // `words`: 64-bit words in a mask of this kernel. Called before any other function. false without memory.
    bool start(unsigned words);
    unsigned words() const { return words_; }

    // Adds a record with an empty mask to the list of live ones; nullptr if the OS has no memory.
    ThreadRecord* take();
    void give(ThreadRecord* record);
    // In the child of a fork: `kept`, or no record if that is nullptr, is the only live one from now on, in no index.
    // Reads no list or index, because another thread may have been changing them at the clone.
    void keep_only(ThreadRecord* kept);

    // Only these set the members of these names.
    void set_tid(ThreadRecord* record, int tid) { of_tid_.set(record, tid); }
    void set_handle(ThreadRecord* record, pthread_t handle) { of_handle_.set(record, handle); }
    void set_owner(ThreadRecord* record, int owner) { of_owner_.set(record, owner); }

    // A live record, or nullptr.
    ThreadRecord* find(int tid) const { return of_tid_.find(tid); }
    ThreadRecord* find(pthread_t handle) const { return of_handle_.find(handle); }
    ThreadRecord* find_owner(int owner) const { return of_owner_.find(owner); }
    ThreadRecord* first() const { return live_; }

private:
    // Its memory begins with this and goes on with records.
    struct Slab {
        Slab* older;
    };
    // false without memory.
    bool next_slab();
    ThreadRecord* fresh();

    // All slabs, the newest first. Those from unused_ on are used again, after keep_only().
    std::atomic<Slab*> slabs_{nullptr};
    Slab* unused_ = nullptr;
    char* rest_ = nullptr;  // the rest of the slab in use
    Bytes rest_bytes_ = 0;
    ThreadRecord* kept_ = nullptr;  // lies in one of the slabs that are used again
    void* tables_ = nullptr;
    unsigned words_ = 1;
    ThreadRecord* live_ = nullptr;
    ThreadRecord* free_ = nullptr;
    RecordIndex<int, 0, &ThreadRecord::tid, &ThreadRecord::next_of_tid> of_tid_;
    RecordIndex<pthread_t, 0, &ThreadRecord::handle, &ThreadRecord::next_of_handle> of_handle_;
    RecordIndex<int, -1, &ThreadRecord::owner, &ThreadRecord::next_of_owner> of_owner_;
    static constexpr Bytes tables_bytes = 3 * decltype(of_tid_)::table_bytes;
};

}  // namespace numalloc::placement
