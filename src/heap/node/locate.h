// Classifies a pointer once. The slow paths of free and realloc, the usable size and moving pass the Location on.
//
//   address -> heap of the node -> bag -> class     a small object
//                                      -> class 0   the bag's run: a big object, a bound heap's, or nothing
//
// Locating a small object does not read its bag's entry.
#pragma once

#include "heap/node/process_heap.h"
#include "heap/space/guarded_slots.h"
#include "heap/space/mark.h"
#include "heap/space/side.h"

namespace numalloc {

enum class Found : std::uint8_t {
    foreign,  // not in an open region
    unused,   // in an open region, but not in a bag that was ever mapped
    nothing,  // in a free bag, inside a big object, or in a big object in quarantine
    small,    // in a bag of a size class
    big,      // the start of a big object
    bound,    // in a run of a bound heap
    guarded,  // in the region of guarded objects
    side,     // in the side heap
};

// Fits two registers.
struct Location {
    NodeHeap* owner = nullptr;  // of the region, or of the guarded object's node; else nullptr
    // big and bound: the first bag of the run; guarded: the slot; side: the size in granules; else the pointer's bag.
    BagIndex bag;
    ClassId class_id;  // small objects, also those of a bound heap; else no_class
    Found found = Found::foreign;
};
static_assert(sizeof(Location) == 16);

// A realloc of an object in use.
struct Resize {
    // Where a new block comes from.
    struct Target {
        NodeId node = no_node;      // whose memory it is to be
        BoundHeap* heap = nullptr;  // the bound heap it is to belong to, which chooses the node
        bool by_lists = false;      // the thread's lists may have it: the node is the thread's own
    };

    Location at;
    Bytes bytes;  // the new size
    Target target;
    bool may_stay;  // the object may keep its address, wherever it is
};

// For a pointer into a mapped bag of class 0.
Location locate_without_class(NodeHeap* owner, BagIndex bag, const void* p);

// For a pointer outside all mapped bags: returns `other`, unless the pointer is in the guarded region or the side heap.
Location locate_outside(const void* p, Location other);

// Locates any pointer. Takes no lock: exact unless another thread frees the object at the same time.
inline Location locate(const void* p) {
    NodeHeap* const owner = process_heap.contains(p) ? process_heap.owner(p) : nullptr;
    if (owner == nullptr) return locate_outside(p, {});
    const Region& region = owner->pages.region();
    const BagIndex bag = region.bag_of(p);
    if (!region.is_mapped(bag)) return locate_outside(p, {owner, bag, no_class, Found::unused});
    if (const ClassId c = region.class_at(bag); c != no_class) return {owner, bag, c, Found::small};
    return locate_without_class(owner, bag, p);
}

// For a small object: whether an object begins at `p` and is not free.
inline bool begins_in_use(Location at, const void* p) {
    const Region& region = at.owner->pages.region();
    const BagIndex head = region.head_of(at.bag);
    const Bytes offset = address_of(p) - region.first_object(head, at.class_id);
    const unsigned index = object_at(at.class_id, offset);
    const ClassShape& shape = shape_of(at.class_id);
    if (index >= shape.objects || offset != Bytes{index} * shape.size) return false;
    // Housekeeping returns pages of such objects, and with a page the mark.
    if (shape.batch == 1 && is_away(region, head, address_of(p) - address_of(region.address(head)))) return false;
    return !was_freed(static_cast<const Object*>(p));
}

// All bytes of an object in use, its tail included.
inline Bytes bytes_of(Location at) {
    if (at.class_id != no_class) return shape_of(at.class_id).size;
    if (at.found == Found::guarded) return guarded::slots->slot[at.bag.value].bytes;
    if (at.found == Found::side) return Bytes{at.bag.value} << granule_shift;
    return Bytes{at.owner->pages.region().bag(at.bag).run} << bag_shift;
}
// Whether the object has a tail: in the hardened library, small and big objects.
inline bool has_tail(Location at) { return hardened && (at.found == Found::small || at.found == Found::big); }
// Writes the tail again after the pages of a big object were discarded and have their final policy.
inline void renew_tail(Location at) {
    if (has_tail(at)) set_tail(at.owner->pages.region().address(at.bag), bytes_of(at), origin_of(Form::malloc, 0));
}
// The bytes that the program may use.
inline Bytes size_of(Location at) { return bytes_of(at) - (has_tail(at) ? tail_bytes : 0); }

// Whether realloc to `n` bytes leaves an object of up to 512 KiB in place: it fits and uses at least half of it.
// Guarded objects and the side heap's always move.
inline bool fits(Location at, Bytes n) {
    if (at.found == Found::guarded || at.found == Found::side) return false;
    const Bytes bytes = size_of(at);
    return bytes <= small_limit && n <= bytes && n >= bytes / 2;
}

}  // namespace numalloc
