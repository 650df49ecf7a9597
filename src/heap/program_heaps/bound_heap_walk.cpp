// Walks over a bound heap that no thread changes during the walk.
#include "base/bit_set.h"
#include "base/check.h"
#include "heap/program_heaps/bound_heap.h"

namespace numalloc {

namespace {

constexpr unsigned most_objects = bag_bytes / granule;  // of a bag: longer bags have larger objects

char* start_of(BagNumber number) {
    return reinterpret_cast<char*>(process_heap.space().region(0) + (Address{number.value} << bag_shift));
}
const Bag& entry_of(BagNumber number) {
    const void* const start = start_of(number);
    const Region& region = process_heap.owner(start)->pages.region();
    return region.bag(region.bag_of(start));
}

void each_object_of(const Bag& bag, char* start, BoundHeap::Visit visit, void* context) {
    if (bag.state == BagState::bound_big) return visit(context, start, Bytes{bag.run} << bag_shift);
    const ClassId c{bag.class_id};
    const Bytes size = shape_of(c).size;
    BitSet<most_objects> freed;
    if (bag.bound.free != BoundHeap::no_object)
        for (auto* o = reinterpret_cast<const Object*>(start + Bytes{bag.bound.free} * granule); o != nullptr;
             o = o->next)
            freed.add(object_at(c, static_cast<Bytes>(reinterpret_cast<const char*>(o) - start)));
    for (unsigned i = 0; i < bag.bound.carved; ++i)
        if (!freed.test(i)) visit(context, start + i * size, size);
}

}  // namespace

void BoundHeap::each_run(Visit visit, void* context) const {
    const auto walk = [&](BagNumber first) {
        for (BagNumber n = first; n != no_number; n = entry_of(n).bound.next)
            visit(context, start_of(n), Bytes{entry_of(n).run} << bag_shift);
    };
    for (const BagNumber first : available_) walk(first);
    walk(rest_);
}

void BoundHeap::each_object(Visit visit, void* context) const {
    const auto walk = [&](BagNumber first) {
        for (BagNumber n = first; n != no_number; n = entry_of(n).bound.next)
            each_object_of(entry_of(n), start_of(n), visit, context);
    };
    for (const BagNumber first : available_) walk(first);
    walk(rest_);
}

}  // namespace numalloc
