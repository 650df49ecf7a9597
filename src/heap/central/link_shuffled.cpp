#include "base/random.h"
#include "heap/central/class_heap.h"
#include "heap/space/mark.h"

namespace numalloc {

// Inserts each object at a uniformly random position of the list built so far (Fisher-Yates on a linked list).
Object* link_shuffled(void* fresh, std::uint32_t count, Bytes size) {
    static constinit std::atomic<std::uint64_t> lists{0};
    Random random(secrets.place + lists.fetch_add(1, std::memory_order_relaxed));
    const auto at = [&](std::uint32_t i) { return reinterpret_cast<Object*>(static_cast<char*>(fresh) + i * size); };
    Object* first = nullptr;
    for (std::uint32_t i = 0; i < count; ++i) {
        Object* const object = at(i);
        if (const std::uint32_t place = random.below(i + 1); place == i) {
            object->next = first;
            first = object;
        } else {
            object->next = at(place)->next;
            at(place)->next = object;
        }
        make_freed(object, size);
    }
    return first;
}

}  // namespace numalloc
