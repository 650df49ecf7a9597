// Objects of other nodes that a thread holds. Objects that it freed wait in a list for each node and class, and return
// home a whole list at a time, to a ring or the bags of their node (NUMAlloc, 3.3, which has no batches). Allocations
// on another node (psm_alloc and the like) are served from the same lists, which fetch() fills.
//
// Holds at most policy::remote::budget bytes, or one list that was just fetched and is longer. The owner works under
// the lock, which is almost always free and in its own cache: other threads take it only for malloc_trim(), for
// statistics, near a container's limit, every 100 ms to see whether objects have waited for long, and to empty the
// cache of a thread that died.
//
// Each node and class has a list of its own, found by hashing:
//
//   table_ -> | head | count | node | class |   ...   open addressing; count == 0: the list is empty
//
// A list keeps its place until all lists are sent, so a search ends at the first unused place. The table is an object
// of the thread's own node, from the first object here to the next flush(). With one node there is never a table.
//
// Beyond the budget lists are sent round robin. So a list that is sent has had a whole round to grow, and is about
// twice as long as the mean: the other node pays for a few cache lines a list, not an object.
#pragma once

#include "base/bit_set.h"
#include "heap/node/process_heap.h"
#include "os/lock.h"

namespace numalloc {

namespace policy::remote {

// Bytes of other nodes' objects that a thread may hold: enough for long lists, and little of another node's memory is
// held back.
constexpr Bytes budget = 64 * KiB;

}  // namespace policy::remote

class RemoteCache {
public:
    // Call it once, before any other function. `home`: the node of the table.
    void start(NodeId home) { home_ = home; }

    // Thread-safe. `p` is an object of class `c` of node `n`.
    void add(NodeId n, ClassId c, Object* p) NUMALLOC_EXCLUDES(lock_);

    // Returns an object of class `c` of node `n`; nullptr if the cache has none. Thread-safe.
    void* take(NodeId n, ClassId c) NUMALLOC_EXCLUDES(lock_);
    // Fetches such objects from the node: returns one and keeps the rest. Spills like ProcessHeap::take_small() if the
    // node is full.
    Allocation fetch(NodeId n, ClassId c) NUMALLOC_EXCLUDES(lock_);

    // Sends all objects home and frees the table. Thread-safe.
    void flush() NUMALLOC_EXCLUDES(lock_);
    // The same if `age` milliseconds have passed since the first object came, or since send_in_turn() last began anew.
    void flush_if_older(std::uint32_t age) NUMALLOC_EXCLUDES(lock_);
    bool empty() const { return bytes() == 0; }

    // Calls take(node, class, objects) for each list with objects, and for the table. Thread-safe.
    template <class Take>
    void for_each_list(Take take) NUMALLOC_EXCLUDES(lock_) {
        if (table() == nullptr) return;
        os::Guard guard(lock_);
        const List* const lists = table();
        if (lists == nullptr) return;
        for (unsigned i = filled_.first(); i < places; i = filled_.next(i + 1))
            take(lists[i].node, lists[i].class_id, lists[i].count);
        take(process_heap.owner(lists)->node, table_class, 1);
    }

private:
    struct List {
        Object* head;
        std::uint32_t count;
        NodeId node;
        ClassId class_id;  // no_class: the place is unused

        Bytes bytes() const { return Bytes{count} * shape_of(class_id).size; }
    };
    static constexpr unsigned places = 512;
    static_assert(is_power_of_two(places));
    // Most lists that have a place. One more list sends all home, so that searches stay short.
    static constexpr unsigned most_placed = places / 4 * 3;
    static constexpr ClassId table_class = class_of(places * sizeof(List));

    Bytes bytes() const { return bytes_.load(std::memory_order_relaxed); }
    List* table() const { return table_.load(std::memory_order_relaxed); }
    // Allocates a table, outside of the lock; nullptr if there is one already, or without memory.
    List* new_table() const;
    // Makes `fresh` the table unless it is nullptr. Returns false if there is no table.
    bool use_table(List* fresh) NUMALLOC_REQUIRES(lock_);
    // Returns the list's place, or the place that it would get.
    List& place_of(NodeId n, ClassId c) NUMALLOC_REQUIRES(lock_);
    // The same, and assigns the place if the list has none.
    List& list_of(NodeId n, ClassId c) NUMALLOC_REQUIRES(lock_);
    void keep(List& list, Object* objects, std::uint32_t count) NUMALLOC_REQUIRES(lock_);
    void send(List& list) NUMALLOC_REQUIRES(lock_);
    // Sends lists, in the order of the table, until at most `most` bytes remain.
    void send_in_turn(Bytes most) NUMALLOC_REQUIRES(lock_);
    // Sends all lists; none has a place afterwards.
    void send_all() NUMALLOC_REQUIRES(lock_);
    void send_all_and_table() NUMALLOC_REQUIRES(lock_);

    os::Lock<os::LockRank::remote_cache> lock_;
    std::uint32_t since_ NUMALLOC_GUARDED_BY(lock_) = 0;  // milliseconds; see flush_if_older()
    NodeId home_;                                         // constant
    std::uint16_t placed_ NUMALLOC_GUARDED_BY(lock_) = 0;
    std::uint16_t turn_ NUMALLOC_GUARDED_BY(lock_) = 0;  // where send_in_turn() goes on
    std::atomic<Bytes> bytes_{0};                        // written under the lock, read without
    std::atomic<List*> table_{nullptr};                  // likewise
    BitSet<places> filled_ NUMALLOC_GUARDED_BY(lock_);
};

}  // namespace numalloc
