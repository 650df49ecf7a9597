// The hardened library's pop() and push(), called like those of hot.h. They check every value that they rely on, and a
// freed object waits in the thread's quarantine before it can be allocated again.
#pragma once

#include "base/atomic.h"
#include "heap/thread/hot.h"

namespace numalloc {

// Whether the object may be in the heap's list of the class: an overwritten link may lead to a forged mark.
NUMALLOC_INLINE bool is_of_class(const ThreadHeap* heap, std::size_t c, const Object* object) {
    const std::uint64_t j = (address_of(object) + heap->bias) >> bag_shift;
    return j < heap->fast_bound && load_relaxed(*(reinterpret_cast<const std::uint8_t*>(heap) - class_reach + j)) == c;
}

// Frees an object that leaves the quarantine: a small object of any node. Defined in free.cpp.
void free_from_quarantine(ThreadHeap* heap, Object* object);

namespace hardened_paths {

NUMALLOC_INLINE void* pop(ThreadHeap* heap, std::size_t c) {
    const ClassId id{static_cast<unsigned>(c)};
    Object* const object = heap->head[c];
    if (object != &end_of_list && !is_of_class(heap, c, object)) die_of_damage(object);
    Object* const next = object->next;
    if (NUMALLOC_UNLIKELY(next == nullptr)) return nullptr;
    if (NUMALLOC_UNLIKELY(!take_mark(object, heap->freed_key))) return nullptr;
    if (!is_as_it_was(object, id)) {
        put_mark(object, heap->freed_key);
        return nullptr;
    }
    heap->head[c] = next;
    ++heap->room[c];
    arm(object, id);
    return object;
}

NUMALLOC_INLINE void leave_quarantine(ThreadHeap* heap, Object* object) {
    const std::uint64_t j = (address_of(object) + heap->bias) >> bag_shift;
    if (NUMALLOC_UNLIKELY(j >= heap->bound)) return free_from_quarantine(heap, object);
    const std::size_t c = load_relaxed(*(reinterpret_cast<const std::uint8_t*>(heap) - class_reach + j));
    if (NUMALLOC_UNLIKELY(heap->room[c] <= 0 || !rests_alone(object))) return free_from_quarantine(heap, object);
    --heap->room[c];
    hot::link(heap, c, object);
}

// Does all checks of the slow path that do not read the bag's entry. Returns Pushed::elsewhere if one fails.
NUMALLOC_INLINE Pushed push(ThreadHeap* heap, void* p, Origin origin) {
    const std::uint64_t j = (address_of(p) + heap->bias) >> bag_shift;
    if (NUMALLOC_UNLIKELY(j >= heap->bound)) return Pushed::elsewhere;
    const ClassId c{load_relaxed(*(reinterpret_cast<const std::uint8_t*>(heap) - class_reach + j))};
    const Bytes size = shape_of(c).size;
    const Region& region = heap->home->pages.region();
    const Bytes offset = address_of(p) - region.first_object(region.bag_of(p), c);
    const unsigned index = object_at(c, offset);
    auto* const object = static_cast<Object*>(p);
    if (NUMALLOC_UNLIKELY(shape_of(c).bags != 1 || offset != index * size || index >= shape_of(c).objects ||
                          was_freed(object)))
        return Pushed::elsewhere;
    if (NUMALLOC_UNLIKELY(origin_at(object, size) != origin)) return Pushed::elsewhere;
    make_freed(object, size);
    if (Object* const out = heap->quarantine.exchange(object, size)) leave_quarantine(heap, out);
    return Pushed::done;
}

}  // namespace hardened_paths
}  // namespace numalloc
