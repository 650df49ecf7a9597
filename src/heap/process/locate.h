// What a pointer is, asked once: the slow way of free, realloc, the usable size and moving hand the answer on.
//
//   address -> heap of the node -> bag -> class     a small object's
//                                      -> class 0   the bag's run: a big object, a bound heap's, or nothing
//
// A class costs two comparisons and two loads, no look at the bag itself.
#pragma once

#include "heap/process/heap.h"
#include "heap/space/freed.h"
#include "heap/space/guarded_slots.h"
#include "heap/space/side.h"

namespace numalloc {

enum class Found : std::uint8_t {
    foreign,  // not in a region that is in use
    unused,   // in one, but not in a bag that was ever mapped
    nothing,  // in a bag that is free, or in the middle of a big object
    small,    // in a bag of a class
    big,      // the start of a big object
    bound,    // in a run of a bound heap
    guarded,  // in the region of guarded objects
    side,     // in the side heap
};

// Two registers.
struct Location {
    NodeHeap* owner = nullptr;  // of the region, or of the guarded object; nullptr if foreign or of the side heap
    BagIndex
        bag;  // big and bound: the first of the run; guarded: its slot; side: its granules; else that of the pointer
    ClassId class_id;  // small, and a bound heap's small objects
    Found found = Found::foreign;
};
static_assert(sizeof(Location) == 16);

// Of a bag of class 0 that is mapped.
Location locate_without_class(NodeHeap* owner, BagIndex bag, const void* p);

// For a pointer outside of all mapped bags: `other`, unless it is in the guarded region or the side heap.
Location locate_outside(const void* p, Location other);

// Any pointer. Reads without a lock: exact for what no other thread frees.
inline Location locate(const void* p) {
    NodeHeap* const owner = process_heap.contains(p) ? process_heap.owner(p) : nullptr;
    if (owner == nullptr) return locate_outside(p, {});
    const Region& region = owner->pages.region();
    const BagIndex bag = region.bag_of(p);
    if (!region.is_mapped(bag)) return locate_outside(p, {owner, bag, no_class, Found::unused});
    if (const ClassId c = region.class_at(bag); c != no_class) return {owner, bag, c, Found::small};
    return locate_without_class(owner, bag, p);
}

// Why `p`, which lies there, cannot be an object in use, or nullptr. As exact as locate().
const char* why_invalid(Location at, const void* p);

// Ends the program that calls `call` with such a pointer.
void end_if_invalid(Location at, const void* p, const char* call);

// Of a small one: an object begins there, and it is not free. Some forty instructions.
inline bool begins_in_use(Location at, const void* p) {
    const Region& region = at.owner->pages.region();
    const Bytes offset = address_of(p) - address_of(region.address(region.head_of(at.bag)));
    return offset == Bytes{object_at(at.class_id, offset)} * shape_of(at.class_id).size &&
           !was_freed(static_cast<const Object*>(p));
}

// Where an object in use is.
inline Location locate_object(const void* p, const char* call) {
    const Location at = locate(p);
    const bool right = at.found == Found::small ? begins_in_use(at, p) : at.found == Found::big;
    if (NUMALLOC_UNLIKELY(!right)) end_if_invalid(at, p, call);
    return at;
}

// Of an object in use all its bytes.
inline Bytes bytes_of(Location at) {
    if (at.class_id != no_class) return shape_of(at.class_id).size;
    if (at.found == Found::guarded) return guarded::slots->slot[at.bag.value].bytes;
    if (at.found == Found::side) return Bytes{at.bag.value} << granule_shift;
    return Bytes{at.owner->pages.region().bag(at.bag).run} << bag_shift;
}
// And those that the program may use.
inline bool has_tail(Location at) { return hardened && (at.found == Found::small || at.found == Found::big); }
// Of a big object whose pages were discarded, once they lie where they are to lie.
inline void renew_tail(Location at) {
    if (has_tail(at)) set_tail(at.owner->pages.region().address(at.bag), bytes_of(at), origin_of(Form::malloc, 0));
}
inline Bytes size_of(Location at) { return bytes_of(at) - (has_tail(at) ? tail_bytes : 0); }
inline Bytes usable_size(const void* p, const char* call) { return size_of(locate_object(p, call)); }

// An object stays where it is while at least half of it is used. Guarded objects and those of the side heap always
// move.
inline bool fits(Location at, Bytes n) {
    if (at.found == Found::guarded || at.found == Found::side) return false;
    const Bytes bytes = size_of(at);
    return bytes <= small_limit && n <= bytes && n >= bytes / 2;
}

}  // namespace numalloc
