// Objects of other nodes that a thread holds. What it has freed is on its way home: collected by
// node and class, and sent a whole list at a time to the ring of the origin node (paper 3.3, with the
// batching that the paper lacked where larson hurt it). What it allocates on another node than its
// own (psm_alloc and the like) is taken from the same lists, fetched from the node a few at a time.
//
// At most policy::remote_budget bytes rest here, and one list that was just fetched. The owner works under the lock,
// which is its own cache line and free: others take it only to empty the remote cache of a thread that has
// gone quiet.
#pragma once

#include "heap/process/heap.h"
#include "os/lock.h"

namespace numalloc {

class RemoteCache {
public:
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

    // For each list that rests here: take(node, class, objects). Thread-safe.
    template <class Take>
    void for_each_list(Take take) NUMALLOC_EXCLUDES(lock_) {
        if (empty()) return;
        os::Guard guard(lock_);
        for (const auto& set : slot_)
            for (const Slot& slot : set)
                if (slot.head != nullptr) take(slot.node, slot.class_id, slot.count);
    }

private:
    struct Slot {
        Object* head;
        std::uint32_t count;
        NodeId node;
        ClassId class_id;

        Bytes bytes() const { return Bytes{count} * shape_of(class_id).size; }
    };
    // By node and class, in sets: lists that fall into one set have a slot each until there are more than slots.
    static constexpr unsigned set_slots = 8;
    static constexpr unsigned sets = 8;
    static unsigned set_of(NodeId n, ClassId c) { return (n.value * 3U + c.value) % sets; }

    Bytes bytes() const { return bytes_.load(std::memory_order_relaxed); }
    // The slot that has objects of (n, c), or nullptr.
    Slot* find(NodeId n, ClassId c) NUMALLOC_REQUIRES(lock_);
    // The same, or an empty one of the set, or the fullest, whose objects are sent.
    Slot& slot_of(NodeId n, ClassId c) NUMALLOC_REQUIRES(lock_);
    void keep(Slot& slot, Object* list, std::uint32_t count) NUMALLOC_REQUIRES(lock_);
    void send(Slot& slot) NUMALLOC_REQUIRES(lock_);
    void send_all() NUMALLOC_REQUIRES(lock_);

    os::Lock<os::LockRank::remote_cache> lock_;
    std::uint32_t since_ NUMALLOC_GUARDED_BY(lock_) = 0;  // milliseconds: when the oldest object came
    std::atomic<Bytes> bytes_{0};                         // written under the lock, read without
    Slot slot_[sets][set_slots] NUMALLOC_GUARDED_BY(lock_) = {};
};

}  // namespace numalloc
