#include "heap/node/locate.h"

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

}  // namespace numalloc
