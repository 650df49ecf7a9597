#include "heap/node/locate.h"

#include "heap/node/bound_heap.h"
#include "heap/space/invalid.h"

namespace numalloc {

Location locate_outside(const void* p, Location other) {
    if (side::contains(p)) {
        const Bytes bytes = side::why_invalid(p) == nullptr ? side::bytes_of(p) : 0;
        return {nullptr, BagIndex{static_cast<std::uint32_t>(bytes >> granule_shift)}, no_class, Found::side};
    }
    if (!guarded::contains(p)) return other;
    const unsigned n = guarded::slots->near(address_of(p));
    return {process_heap.opened(guarded::slots->slot[n].node), BagIndex{n}, no_class, Found::guarded};
}

// The entry of a wild pointer's bag may be stale, but only runs in use have the states big and bound.
Location locate_without_class(NodeHeap* owner, BagIndex b, const void* p) {
    const Region& region = owner->pages.region();
    if (guarded::contains(p)) return locate_outside(p, {});
    if (b < region.first_bag()) return {owner, b, no_class, Found::unused};
    const Location nothing{owner, b, no_class, Found::nothing};
    BagIndex run = b;
    if (const Bag& entry = region.bag(b); entry.state == BagState::inside) {
        if (entry.run > b - region.first_bag()) return nothing;
        run = b - entry.run;
    }
    const Bag& first = region.bag(run);
    switch (first.state) {
        case BagState::big:
            if (hardened && load_relaxed(first.big.thread) == Bag::Big::in_quarantine) return nothing;
            return run == b && address_of(p) % bag_bytes == 0 ? Location{owner, run, no_class, Found::big} : nothing;
        case BagState::bound_small:
        case BagState::bound_big:
            return b - run < first.run ? Location{owner, run, ClassId{first.class_id}, Found::bound} : nothing;
        default: return nothing;
    }
}

const char* why_invalid(Location at, const void* p) {
    switch (at.found) {
        case Found::foreign: return "was not allocated by numalloc";
        case Found::unused: return "was never allocated";
        case Found::nothing: return "is not an allocated object, or was freed already";
        case Found::small:
            if (const char* why = ClassHeap::why_invalid(at.owner->pages.region(), at.bag, at.class_id, p)) return why;
            return was_freed(static_cast<const Object*>(p)) ? "was freed already" : nullptr;
        case Found::bound: return BoundHeap::why_invalid(at, p);
        case Found::guarded: return guarded::why_invalid(p);
        case Found::side: return side::why_invalid(p);
        case Found::big: break;
    }
    return nullptr;
}

// Valid objects of bound heaps, the guarded region and the side heap are checked here too, and pass.
void end_if_invalid(Location at, const void* p, const char* call) {
    if (const char* why = why_invalid(at, p)) die_of_invalid_pointer(call, p, why);
}

}  // namespace numalloc
