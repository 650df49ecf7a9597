// Slots of fixed size in the region's metadata, one for each thread heap. take() prefers the lowest. The pages of many
// free slots above all slots in use return to the system.
#pragma once

#include <atomic>

#include "heap/space/region.h"
#include "os/lock.h"

namespace numalloc {

namespace policy::slots {

// With more than 128 threads on a node batches are halved, with more than 256 halved again, and so on, down to two
// objects: what all threads hold grows more slowly than their number.
constexpr std::uint32_t uncrowded = 128;

// If 64 or more unused thread heaps lie above the last one in use, all but 16 return their memory. The 16 serve the
// next threads, and the gap keeps threads that come and go from returning memory each time.
constexpr std::uint32_t kept_unused = 16;
constexpr std::uint32_t most_unused = 64;

}  // namespace policy::slots

class SlotPool {
public:
    SlotPool() {}  // does not write to free_: that would touch its page
    void start(Bytes slot_bytes) { slot_bytes_ = slot_bytes; }
    // Returns nullptr without memory, or if `most` slots exist. New slots read as zero. Reused ones are as their
    // thread, or the fork, left them. `left_behind`: whether a slot belongs to a thread of the parent only.
    void* take(Region& region, bool (*left_behind)(const void* slot)) NUMALLOC_EXCLUDES(lock_);
    // Clears `in_use` and frees the slot in one step: a fork sees both or neither.
    void give(const Region& region, void* slot, std::atomic<bool>& in_use) NUMALLOC_EXCLUDES(lock_);
    // Whether take() would make a new slot.
    bool used_up() NUMALLOC_EXCLUDES(lock_) {
        os::Guard guard(lock_);
        return lowest_free() >= made() && next_to_ask_ >= ask_below_;
    }
    // Returns the pages of free slots to the system if many lie above all slots in use, and no Walk exists. No thread
    // may take or show a slot during the call.
    void give_back_unused(const Region& region) NUMALLOC_EXCLUDES(lock_);
    // While it exists no slot below made() is given back: a slot that was in use a moment ago may be looked at, and
    // locks in it may be taken.
    //
    //   a walker              give_back_unused()
    //     count itself          lower made()
    //     read made()           any walker? raise it again
    class [[nodiscard]] Walk {
    public:
        explicit Walk(SlotPool& pool) : pool_(pool) { pool.walkers_.fetch_add(1, std::memory_order_seq_cst); }
        // A handler that interrupted the walk may have forked: leave_behind() counts no walker in the child.
        ~Walk() {
            if (generation_ == os::fork_gate.generation()) pool_.walkers_.fetch_sub(1, std::memory_order_release);
        }
        Walk(const Walk&) = delete;
        Walk& operator=(const Walk&) = delete;
        std::uint32_t made() const { return pool_.made_.load(std::memory_order_seq_cst); }

    private:
        SlotPool& pool_;
        const std::uint32_t generation_ = os::fork_gate.generation();
    };
    // Whether give_back_unused() may find such slots.
    bool has_unused() const { return made() - taken() >= policy::slots::most_unused; }
    // Counts a new slot in made(), after its thread has initialised it. One thread at a time takes and shows.
    void show(const Region& region, const void* slot) NUMALLOC_EXCLUDES(lock_);
    // In the child of a fork: only `kept` slots belong to its threads. take() looks for the others later: a walk here
    // would copy their pages.
    void leave_behind(std::uint32_t kept) NUMALLOC_EXCLUDES(lock_);
    // Number of slots that were shown, in use or free, less those that give_back_unused() returned.
    std::uint32_t made() const { return made_.load(std::memory_order_acquire); }
    // The number of slots in use.
    std::uint32_t taken() const { return taken_.load(std::memory_order_relaxed); }
    // How often the threads' batches are halved: not up to policy::slots::uncrowded threads, once up to twice as many,
    // and so on.
    unsigned crowding() const { return crowding_.load(std::memory_order_relaxed); }
    void* at(const Region& region, std::uint32_t i) const {
        return reinterpret_cast<void*>(region.thread_heaps() + Bytes{i} * slot_bytes_);
    }
    std::uint32_t number_of(const Region& region, const void* slot) const {
        return static_cast<std::uint32_t>((address_of(slot) - region.thread_heaps()) / slot_bytes_);
    }

private:
    static constexpr std::uint32_t most = 32 * 1024;

    void count(std::uint32_t taken) NUMALLOC_REQUIRES(lock_);
    static std::uint64_t bit(std::uint32_t slot) { return std::uint64_t{1} << slot % 64; }
    bool is_free(std::uint32_t slot) const NUMALLOC_REQUIRES(lock_) { return (free_[slot / 64] & bit(slot)) != 0; }
    std::uint32_t lowest_free() const NUMALLOC_REQUIRES(lock_);

    os::Lock<os::LockRank::metadata> lock_;
    Bytes slot_bytes_ = 0;                // constant
    std::atomic<std::uint32_t> made_{0};  // these two: written under the lock, read without it
    std::atomic<std::uint32_t> taken_{0};
    std::atomic<std::uint32_t> walkers_{0};
    std::uint32_t next_to_ask_ NUMALLOC_GUARDED_BY(lock_) = 0;  // slots from here to ask_below_ may be left behind
    std::uint32_t ask_below_ NUMALLOC_GUARDED_BY(lock_) = 0;
    std::atomic<std::uint8_t> crowding_{0};                     // likewise
    std::uint64_t free_[most / 64] NUMALLOC_GUARDED_BY(lock_);  // a bit each, 1 if free; zero pages stay untouched
};

}  // namespace numalloc
