// Objects of other nodes that a thread holds. What it has freed is on its way home: collected by
// node and class, and sent a whole list at a time to the ring of the origin node (paper 3.3, with the
// batching that the paper lacked where larson hurt it). What it allocates on another node than its
// own (psm_alloc and the like) is taken from the same lists, fetched from the node a few at a time.
//
// At most policy::remote_budget bytes rest here, and one list that was just fetched. The owner works under the lock,
// which is its own cache line and free: others take it only to empty the remote cache of a thread that has
// gone quiet.
//
// Each node and class has a list of its own, found by hashing:
//
//   table_ -> | head | count | node | class |   ...   open addressing; count == 0: the list is empty
//
// A list keeps its place until all are sent, so that a search ends at the first place that none has. The table is an
// object of the thread's own node, which it has while something rests here; on a machine of one node none is made.
//
// When too much rests here, the lists are sent in turn. So a list has had a whole turn to grow, and is twice as long as
// the mean: what goes home costs the other node some cache lines a list, not an object.
#pragma once

#include "base/bit_set.h"
#include "heap/process/heap.h"
#include "os/lock.h"

namespace numalloc {

class RemoteCache {
public:
    // Said once, before all else: where the lists are to be.
    void start(NodeId home) { home_ = home; }

    // Thread-safe. `p` is an object of class `c` of node `n`.
    void add(NodeId n, ClassId c, Object* p) NUMALLOC_EXCLUDES(lock_);

    // An object of class `c` of node `n`, if there is one here. Thread-safe.
    void* take(NodeId n, ClassId c) NUMALLOC_EXCLUDES(lock_);
    // The same from the node, with some more to rest here; as ProcessHeap::take_small() says when the node is
    // full.
    Allocation fetch(NodeId n, ClassId c) NUMALLOC_EXCLUDES(lock_);

    // Sends everything. Thread-safe.
    void flush() NUMALLOC_EXCLUDES(lock_);
    // The same, if it has rested since before `now - age` milliseconds.
    void flush_if_older(std::uint32_t now, std::uint32_t age) NUMALLOC_EXCLUDES(lock_);
    bool empty() const { return bytes() == 0; }

    // For each list that rests here, and for the table: take(node, class, objects). Thread-safe.
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
        ClassId class_id;  // 0: no list has this place

        Bytes bytes() const { return Bytes{count} * shape_of(class_id).size; }
    };
    static constexpr unsigned places = 512;
    static_assert(is_power_of_two(places));
    // When more lists have a place all are sent: searches stay short.
    static constexpr unsigned most_placed = places / 4 * 3;
    static constexpr ClassId table_class = class_of(places * sizeof(List));

    Bytes bytes() const { return bytes_.load(std::memory_order_relaxed); }
    List* table() const { return table_.load(std::memory_order_relaxed); }
    // Makes the table outside of the lock, where there is none: nullptr if there is one, or with no memory left.
    List* new_table() const;
    // With `fresh` as the table, if it is none of nullptr. False: there is no table.
    bool use_table(List* fresh) NUMALLOC_REQUIRES(lock_);
    // The list's place, or the one that it would have.
    List& place_of(NodeId n, ClassId c) NUMALLOC_REQUIRES(lock_);
    // With a place in any case.
    List& list_of(NodeId n, ClassId c) NUMALLOC_REQUIRES(lock_);
    void keep(List& list, Object* objects, std::uint32_t count) NUMALLOC_REQUIRES(lock_);
    void send(List& list) NUMALLOC_REQUIRES(lock_);
    // Sends lists, one after the other, until at most `most` bytes rest here.
    void send_in_turn(Bytes most) NUMALLOC_REQUIRES(lock_);
    // No list has a place afterwards.
    void send_all() NUMALLOC_REQUIRES(lock_);
    void send_all_and_table() NUMALLOC_REQUIRES(lock_);

    os::Lock<os::LockRank::remote_cache> lock_;
    std::uint32_t since_ NUMALLOC_GUARDED_BY(lock_) = 0;  // milliseconds: the oldest object came then, or a turn before
    NodeId home_;                                         // constant
    std::uint16_t placed_ NUMALLOC_GUARDED_BY(lock_) = 0;
    std::uint16_t turn_ NUMALLOC_GUARDED_BY(lock_) = 0;  // where send_in_turn() goes on
    std::atomic<Bytes> bytes_{0};                        // written under the lock, read without
    std::atomic<List*> table_{nullptr};                  // likewise
    BitSet<places> filled_ NUMALLOC_GUARDED_BY(lock_);
};

}  // namespace numalloc
