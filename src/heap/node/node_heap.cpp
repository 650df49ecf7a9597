#include "heap/node/node_heap.h"

namespace numalloc {

void* SlotPool::take(Region& region) {
    os::Guard guard(lock_);
    if (free_ != nullptr) {
        Object* slot = free_;
        free_ = slot->next;
        return slot;
    }
    if (!region.grow_thread_heaps((Bytes{made_} + 1) * slot_bytes_)) return nullptr;
    return at(region, made_);
}

void SlotPool::show(const Region& region, const void* slot) {
    os::Guard guard(lock_);
    if (slot == at(region, made_)) __atomic_store_n(&made_, made_ + 1, __ATOMIC_RELEASE);
}

void SlotPool::give(void* slot) {
    os::Guard guard(lock_);
    Object* object = static_cast<Object*>(slot);
    object->next = free_;
    free_ = object;
}

}  // namespace numalloc
