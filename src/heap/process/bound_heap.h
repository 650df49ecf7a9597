// A heap that a program makes for itself on one node: its objects live until they are freed one
// by one or all at once. Nothing of it is in a thread's lists: each call takes the heap's lock.
//
//   available[c] -> bag <-> bag ...      bags of the class with an object to give
//   rest         -> bag <-> run ...      full bags and big objects
//
// Every run of the heap is in exactly one of these lists, by which all of them are found when the
// heap ends. Lists link bag numbers, counted from the start of the address space: where the node
// has no room, bags come from the nearest other (unless memory is bound strictly).
//
// Such bags have class 0 in the class map, so that a thread's fast free leaves them alone. An empty bag
// goes back to its node's page heap, unless it is 32 KiB and the only available one of its class.
//
// Invariants of a bag, under the lock: taken + (its freed objects) == carved <= objects.
//
// Thread-safe but for reset() and destroy(), after which no object of the heap may be used.
#pragma once

#include "heap/process/locate.h"

namespace numalloc {

class BoundHeap {
public:
    // nullptr with no memory. The heap's own few hundred bytes lie on the node, too.
    static BoundHeap* create(NodeId node) { return create(node, {}, nullptr); }
    // Its pages lie as `spread` says; memory comes from the regions of `within` only, our numbers, or any for nullptr.
    static BoundHeap* create(NodeId node, const Spread& spread, const os::NodeMask* within);
    // Frees every object and the heap. Bags go back to their nodes: O(bags), not O(objects).
    void destroy() NUMALLOC_EXCLUDES(lock_);
    // Frees every object.
    void reset() NUMALLOC_EXCLUDES(lock_);

    NodeId node() const { return node_; }

    // `n` bytes, n > 0, aligned to a power of two.
    Allocation allocate(Bytes n, Bytes alignment) NUMALLOC_EXCLUDES(lock_);

    // These take what locate() found of `p`, a bound heap's. nullptr, or why `p` is no object in use.
    static const char* why_invalid(Location at, const void* p);
    static const char* free(Location at, void* p);
    // The two steps of free(). The first one takes the object back and calls no function of other libraries. The second
    // one returns the bags that it left without objects to their node, also if the heap has been destroyed since.
    struct Emptied {
        BagNumber number = no_number;
        bool is_spread = false;
    };
    static const char* take_back(Location at, void* p, Emptied& emptied);
    static void give(const Emptied& emptied);
    // Whose it is.
    static BoundHeap* of(Location at) { return at.owner->pages.region().bag(at.bag).bound.heap; }
    // Resizes a big object where it is. false where that cannot be, and for a small one.
    static bool resize_big(Location at, std::uint32_t bags);

    // From now on it takes no more memory where it would hold more than `bytes`.
    void set_limit(Bytes bytes) NUMALLOC_EXCLUDES(lock_);

    // Every run, and every object in use, in no order; nobody may allocate, resize or free in the heap meanwhile, so no
    // lock is held while `visit` runs.
    using Visit = void (*)(void* context, void* start, Bytes bytes);
    void each_run(Visit visit, void* context) const NUMALLOC_NO_THREAD_SAFETY_ANALYSIS;
    void each_object(Visit visit, void* context) const NUMALLOC_NO_THREAD_SAFETY_ANALYSIS;

    static constexpr std::uint16_t no_object = 0xFFFF;

    struct Use {
        Bytes used = 0;  // of objects, rounded up to their classes
        Bytes held = 0;  // of bags
    };
    Use use() const NUMALLOC_EXCLUDES(lock_);
    void validate() NUMALLOC_EXCLUDES(lock_);

private:
    BoundHeap(NodeId node, const Spread& spread, const os::NodeMask* within);
    void* take(Bytes bytes, Bytes alignment, BagState state, ClassId c) NUMALLOC_EXCLUDES(lock_);
    void give(BagNumber number) const { give({number, is_spread()}); }
    bool is_spread() const { return spread_.how != Spread::How::not_at_all; }
    Allocation allocate_small(ClassId c) NUMALLOC_EXCLUDES(lock_);
    void* allocate_big(Bytes n, Bytes alignment) NUMALLOC_EXCLUDES(lock_);
    void add_bag(ClassId c, void* start) NUMALLOC_REQUIRES(lock_);
    bool promise(Bytes bytes) NUMALLOC_REQUIRES(lock_);
    const char* take_back_small(Location at, Bag& bag, void* p, Emptied& emptied) NUMALLOC_EXCLUDES(lock_);
    BagNumber& list_of(const Bag& bag) NUMALLOC_REQUIRES(lock_);
    void enlist(BagNumber& list, BagNumber number) NUMALLOC_REQUIRES(lock_);
    void unlist(BagNumber& list, BagNumber number) NUMALLOC_REQUIRES(lock_);
    void give_all(BagNumber& list) NUMALLOC_REQUIRES(lock_);

    mutable os::Lock<os::LockRank::bound_heap> lock_;
    NodeId node_;  // these: constant
    bool limited_;
    os::NodeMask within_;
    Spread spread_;
    Bytes used_ NUMALLOC_GUARDED_BY(lock_) = 0;
    Bytes held_ NUMALLOC_GUARDED_BY(lock_) = 0;
    Bytes promised_ NUMALLOC_GUARDED_BY(lock_) = 0;  // being taken by some thread
    Bytes limit_ NUMALLOC_GUARDED_BY(lock_) = ~Bytes{0};
    BagNumber rest_ NUMALLOC_GUARDED_BY(lock_);
    BagNumber available_[class_count] NUMALLOC_GUARDED_BY(lock_);
};

}  // namespace numalloc
