// Everything that the threads of one node share. It lies in its node's own region, on normal pages.
#pragma once

#include "heap/central/class_heap.h"
#include "heap/process/list_budget.h"

namespace numalloc {

// Fixed-size pieces of the region's metadata for the thread heaps, the lowest first. When many are free above those
// that are in use, their pages go back.
class SlotPool {
public:
    SlotPool() {}  // leaves free_ as it is: writing to it would touch its page
    void start(Bytes slot_bytes) { slot_bytes_ = slot_bytes; }
    // nullptr with no memory left, or when there are `most` already. New slots read as zero, reused ones as they were
    // given back, or as the fork found them: `left_behind` says whether one is of a thread that a child does not have.
    void* take(Region& region, bool (*left_behind)(const void* slot)) NUMALLOC_EXCLUDES(lock_);
    // One step for a fork: the slot is in use, or here.
    void give(const Region& region, void* slot, std::atomic<bool>& in_use) NUMALLOC_EXCLUDES(lock_);
    // Whether take() would make a new one.
    bool used_up() NUMALLOC_EXCLUDES(lock_) {
        os::Guard guard(lock_);
        return lowest_free() >= made() && next_to_ask_ >= ask_below_;
    }
    // Gives back the pages of slots of threads that have ended, where many are free above all that are in use. Nobody
    // takes or shows one meanwhile.
    void give_back_unused(const Region& region) NUMALLOC_EXCLUDES(lock_);
    // Whether there may be such.
    bool has_unused() const { return made() - taken() >= policy::most_unused; }
    // A new slot shows in made() only now that its taker has made something of it. One thread at
    // a time takes and shows.
    void show(const Region& region, const void* slot) NUMALLOC_EXCLUDES(lock_);
    // In the child of a fork: of all slots only `kept` belong to threads that it has. Others are found when they
    // are wanted: a walk now would copy their pages.
    void leave_behind(std::uint32_t kept) NUMALLOC_EXCLUDES(lock_);
    // All slots that were taken and shown, and not given back since: for walks over them.
    std::uint32_t made() const { return made_.load(std::memory_order_acquire); }
    // How often the threads' batches are halved: not for the first policy::uncrowded threads, once up to
    // twice as many, and so on.
    std::uint32_t taken() const { return taken_.load(std::memory_order_relaxed); }
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
    std::atomic<std::uint32_t> made_{0};  // written under the lock, read without, and the next one too
    std::atomic<std::uint32_t> taken_{0};
    std::uint32_t next_to_ask_ NUMALLOC_GUARDED_BY(lock_) = 0;  // the slots from here to ask_below_ may be left behind
    std::uint32_t ask_below_ NUMALLOC_GUARDED_BY(lock_) = 0;
    std::atomic<std::uint8_t> crowding_{0};                     // as made_
    std::uint64_t free_[most / 64] NUMALLOC_GUARDED_BY(lock_);  // a bit each; zero pages say none, and are not touched
};

struct alignas(64) NodeHeap {
    NodeId node = {};
    PageHeap pages = {};
    SlotPool slots = {};
    // Threads get their heaps one at a time; they let go of them without it.
    os::Lock<os::LockRank::thread_pool> attaching = {};
    std::uint32_t next_to_ask NUMALLOC_GUARDED_BY(attaching) = 0;  // of the slots: whether its thread still lives
    MetadataPages mapped NUMALLOC_GUARDED_BY(attaching) = {};      // of what it needs
    std::uint32_t cpus_seen NUMALLOC_GUARDED_BY(attaching) = 0;    // where nobody says which CPUs are the node's

    ListBudget list_budget = {};
    std::atomic<std::uint32_t> next_drain = {};  // when its rings are next looked at, in milliseconds

    // For the statistics, since the start.
    std::atomic<std::uint64_t> spills = {};  // requests that a farther node served
    std::atomic<Bytes> moved_here = {};      // by move_big()

    // What it may need in all: the shards come behind it, in pages that are zero until they are used. Those of a shard
    // are mapped when a thread has it.
    static const Bytes bytes;
    Shards& shards() { return *reinterpret_cast<Shards*>(this + 1); }
    ClassHeap of(ClassId c) { return {shards(), pages, c}; }
    // The rings' objects go back to their bags: all, or those of shards that nobody uses.
    void drain(bool idle_only) {
        for (unsigned c = 1; c < class_count; ++c) of(ClassId{c}).drain(idle_only);
    }
    // Returns free pages of bags in use to the system. The number of bytes.
    Bytes return_free_pages(std::uint32_t now) {
        Bytes bytes = 0;
        for (unsigned c = 1; c < class_count; ++c) bytes += of(ClassId{c}).return_free_pages(now);
        return bytes;
    }
};
inline constexpr Bytes NodeHeap::bytes = sizeof(NodeHeap) + sizeof(Shards);

}  // namespace numalloc
