#include "heap/process/statistics.h"

namespace numalloc {

NodeStatistics statistics_of(NodeId n) {
    NodeStatistics s;
    NodeHeap* node = process_heap.opened(n);
    if (node == nullptr) return s;
    for (unsigned c = 1; c < class_count; ++c) {
        const ClassUse use = node->of(ClassId{c}).use();
        const Bytes size = shape_of(ClassId{c}).size;
        s.small_taken += use.taken * size;
        s.small_ring += use.ring * size;
    }
    const PageHeapUse use = node->pages.use();
    s.small_bags = use.small_bags << bag_shift;
    s.big_objects = use.big_objects;
    s.big_bytes = use.big_bags << bag_shift;
    s.heap_bytes = use.bound_bags << bag_shift;
    s.free_bytes = use.free_bags << bag_shift;
    s.dirty_bytes = use.dirty_bags << bag_shift;
    s.purged_bytes = use.purged_bags << bag_shift;
    s.thread_heaps = node->slots.made();
    return s;
}

NodeStatistics statistics_of_process() {
    NodeStatistics sum;
    for (unsigned n = 0; n < process_heap.heaps(); ++n) {
        const NodeStatistics s = statistics_of(NodeId{n});
#define NUMALLOC_STATISTIC(name, unit, what) sum.name += s.name;
#include "numalloc/statistics.def"
#undef NUMALLOC_STATISTIC
    }
    return sum;
}

}  // namespace numalloc
