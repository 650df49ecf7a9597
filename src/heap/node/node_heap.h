// The data that the threads of one node share. It lies in the node's own region, on normal pages.
#pragma once

#include "heap/central/class_heap.h"
#include "heap/node/ended_threads.h"
#include "heap/node/list_budget.h"
#include "heap/node/slot_pool.h"

namespace numalloc {

struct alignas(64) NodeHeap {
    NodeId node = {};
    bool balanced = false;  // holds the node's balanced blocks: process_heap.h
    PageHeap pages = {};
    SlotPool slots = {};
    EndedThreads ended = {};
    // Held while a thread gets its heap. A thread returns its heap without it.
    os::Lock<os::LockRank::thread_pool> attaching = {};
    std::uint32_t next_to_ask NUMALLOC_GUARDED_BY(attaching) = 0;  // the next slot to check for a dead thread
    MetadataPages mapped NUMALLOC_GUARDED_BY(attaching) = {};      // the pages of this NodeHeap and its shards
    std::uint32_t cpus_known NUMALLOC_GUARDED_BY(attaching) = 0;   // 1 + the highest CPU or heap seen; one node only

    std::atomic<std::uint32_t> next_drain = {};  // milliseconds: when what is idle is next returned

    // For the statistics, counted since the start.
    std::atomic<std::uint64_t> spills = {};  // requests that another node served
    std::atomic<Bytes> moved_here = {};      // moved to this node by move_big()

    ListBudget list_budget = {};

    // The NodeHeap and all shards behind it, on pages that are zero until used. A thread that gets a shard maps its
    // pages.
    static const Bytes bytes;
    Shards& shards() { return *reinterpret_cast<Shards*>(this + 1); }
    ClassHeap of(ClassId c) { return {shards(), pages, c}; }
    // Returns the objects in rings to their bags: of all shards, or only of those unused since the last call.
    void drain(bool idle_only) {
        for (unsigned c = 1; c < class_count; ++c) of(ClassId{c}).drain(idle_only);
    }
    // Purges free pages of bags in use. Returns the number of bytes. `now`: milliseconds.
    Bytes return_free_pages(std::uint32_t now) {
        Bytes bytes = 0;
        for (unsigned c = 1; c < class_count; ++c) bytes += of(ClassId{c}).return_free_pages(now);
        return bytes;
    }
    // The same for what has been idle for `delay` milliseconds, as far as `part` allows.
    void return_idle_pages(std::uint32_t now, std::uint32_t delay, IdlePart& part) {
        for (unsigned c = 1; c < class_count; ++c) of(ClassId{c}).return_idle_pages(now, delay, part);
    }
};
inline constexpr Bytes NodeHeap::bytes = sizeof(NodeHeap) + sizeof(Shards);

}  // namespace numalloc
