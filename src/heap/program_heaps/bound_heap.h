// A heap that a program creates for itself on one node. Its objects live until they are freed one by one or all at
// once. No thread's list holds them: each call takes the heap's lock.
//
//   available[c] -> bag <-> bag ...      bags of class c with a free object
//   rest         -> bag <-> run ...      full bags and big objects
//
// Every run of the heap is in exactly one of these lists, so destroy() finds them all. The lists link bag numbers,
// counted from the start of the address space, because a bag may lie on another node: if the heap's node has no room,
// bags come from the nearest other (unless memory is bound strictly).
//
// The bags have class 0 in the class map, so a thread's fast free rejects their objects. An empty bag returns to its
// node's page heap, unless it is 32 KiB long and the only available bag of its class.
//
// Invariant of a bag, under the lock: taken + (its freed objects) == carved <= objects.
//
// Thread-safe, except for reset() and destroy(): after them no object of the heap may be used.
#pragma once

#include "heap/program_heaps/spread.h"

namespace numalloc {

class BoundHeap {
public:
    // Returns nullptr without memory. The BoundHeap itself lies on the node, too.
    static BoundHeap* create(NodeId node) { return create(node, {}, nullptr); }
    // `spread`: the policy of its pages. `within`: the nodes (numalloc's numbers) that may serve it; nullptr for all.
    static BoundHeap* create(NodeId node, const Spread& spread, const os::NodeMask* within);
    // Frees every object and the heap. Returns the bags to their nodes: O(bags + freed objects), whatever is in use.
    void destroy() NUMALLOC_EXCLUDES(lock_);
    // Frees every object.
    void reset() NUMALLOC_EXCLUDES(lock_);

    NodeId node() const { return node_; }
    // Whether its pages lie on several nodes.
    bool is_spread() const { return spread_.how != Spread::How::not_at_all; }

    // Allocates `n` > 0 bytes, aligned to a power of two. Returns no object without memory, or at the limit.
    Allocation allocate(Bytes n, Bytes alignment) NUMALLOC_EXCLUDES(lock_);
    // The same for a small object of the class.
    Allocation allocate(ClassId c) NUMALLOC_EXCLUDES(lock_);

    // why_invalid(), free() and take_back() take what locate() found for `p`, which is in a bound heap. They return
    // nullptr, or the reason why `p` is not an object in use.
    static const char* why_invalid(Location at, const void* p);
    static const char* free(Location at, void* p);
    // The two steps of free(). take_back() frees the object and calls no function of other libraries. give() returns a
    // run that became empty to its node, even if the heap has been destroyed since.
    struct Emptied {
        BagNumber number = no_number;
        bool is_spread = false;
    };
    static const char* take_back(Location at, void* p, Emptied& emptied);
    static void give(const Emptied& emptied);
    // Whether the pages of its heap lie on several nodes. For any bag of a bound heap: of one that another thread takes
    // or gives back meanwhile, the answer is arbitrary.
    static bool lies_spread(Location at) {
        return load_relaxed(at.owner->pages.region().bag(at.bag).bound.spread) == 1;
    }
    // The heap of a located object, which is in use and stays so.
    static BoundHeap* of(Location at) { return at.owner->pages.region().bag(at.bag).bound.heap; }
    // Resizes a big object in place. Returns false if that is impossible, and for a small object.
    static bool resize_big(Location at, std::uint32_t bags);

    // From now on the heap takes no more memory if it would then hold more than `bytes`.
    void set_limit(Bytes bytes) NUMALLOC_EXCLUDES(lock_);

    // Visits every run, or every object in use, in no particular order. No thread may allocate, resize or free in the
    // heap during the walk, so `visit` is called without the lock.
    using Visit = void (*)(void* context, void* start, Bytes bytes);
    void each_run(Visit visit, void* context) const NUMALLOC_NO_THREAD_SAFETY_ANALYSIS;
    void each_object(Visit visit, void* context) const NUMALLOC_NO_THREAD_SAFETY_ANALYSIS;

    static constexpr std::uint16_t no_object = 0xFFFF;

    struct Use {
        Bytes used = 0;  // bytes of objects, rounded up to their classes
        Bytes held = 0;  // bytes of bags
    };
    Use use() const NUMALLOC_EXCLUDES(lock_);
    void validate() NUMALLOC_EXCLUDES(lock_);

private:
    BoundHeap(NodeId node, const Spread& spread, const os::NodeMask* within);
    void* take(Bytes bytes, Bytes alignment, BagState state, ClassId c) NUMALLOC_EXCLUDES(lock_);
    void give(BagNumber number) const { give({number, is_spread()}); }
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
    NodeId node_;  // constant, as are the next three members
    bool limited_;
    os::NodeMask within_;
    Spread spread_;
    Bytes used_ NUMALLOC_GUARDED_BY(lock_) = 0;
    Bytes held_ NUMALLOC_GUARDED_BY(lock_) = 0;
    Bytes promised_ NUMALLOC_GUARDED_BY(lock_) = 0;  // bytes for which a take() is in progress
    Bytes limit_ NUMALLOC_GUARDED_BY(lock_) = ~Bytes{0};
    BagNumber rest_ NUMALLOC_GUARDED_BY(lock_);
    BagNumber available_[class_count] NUMALLOC_GUARDED_BY(lock_);
};

}  // namespace numalloc
