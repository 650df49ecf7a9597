#include "heap/process/node_heap.h"

namespace numalloc {

void SlotPool::count(std::uint32_t taken) {
    __atomic_store_n(&taken_, taken, __ATOMIC_RELAXED);
    const unsigned crowding = taken > uncrowded ? log2_floor((taken - 1) / uncrowded) + 1 : 0;
    __atomic_store_n(&crowding_, static_cast<std::uint8_t>(crowding), __ATOMIC_RELAXED);
}

void SlotPool::leave_behind(std::uint32_t kept) {
    os::Guard guard(lock_);
    count(kept);
    next_to_ask_ = 0;
    ask_below_ = made_;
}

void* SlotPool::take(Region& region, bool (*left_behind)(const void* slot)) {
    os::Guard guard(lock_);
    if (free_ != nullptr) {
        Object* slot = free_;
        free_ = slot->next;
        count(taken_ + 1);
        return slot;
    }
    while (next_to_ask_ < ask_below_) {
        void* const slot = at(region, next_to_ask_++);
        if (!left_behind(slot)) continue;
        count(taken_ + 1);
        return slot;
    }
    if (!region.grow_thread_heaps((Bytes{made_} + 1) * slot_bytes_)) return nullptr;
    count(taken_ + 1);
    return at(region, made_);
}

void SlotPool::show(const Region& region, const void* slot) {
    os::Guard guard(lock_);
    if (slot == at(region, made_)) __atomic_store_n(&made_, made_ + 1, __ATOMIC_RELEASE);
}

void SlotPool::give(void* slot, bool& in_use) {
    os::Guard guard(lock_);
    __atomic_store_n(&in_use, false, __ATOMIC_RELEASE);
    Object* object = static_cast<Object*>(slot);
    object->next = free_;
    free_ = object;
    count(taken_ - 1);
}

}  // namespace numalloc
