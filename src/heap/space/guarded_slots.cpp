#include "heap/space/guarded_slots.h"

#include <new>

#include "os/memory.h"

namespace numalloc::guarded {

constinit Slots* slots = nullptr;
constinit Address region_begin = 0;
constinit Bytes region_bytes = 0;

bool make_slots() {
    const Bytes page = os::page_size();
    const Bytes bytes = (2 * Bytes{slot_count} + 1) * page;
    void* const region = os::hold(bytes, page);
    if (region == nullptr) return false;
    void* const place = os::map(align_up(sizeof(Slots), page));
    if (place == nullptr) {
        os::unmap(region, bytes);
        return false;
    }
    auto* const made = new (place) Slots;
    made->begin = address_of(region);
    made->page = page;
    {
        os::Guard guard(made->lock);
        for (unsigned n = 0; n < slot_count; ++n) made->queue[n] = static_cast<std::uint16_t>(n);
    }
    slots = made;
    region_begin = made->begin;
    region_bytes = bytes;
    return true;
}

unsigned Slots::take() {
    os::Guard guard(lock);
    if (free == 0) return slot_count;
    const unsigned n = queue[first];
    first = (first + 1) % slot_count;
    --free;
    return n;
}

void Slots::give(unsigned n) {
    os::Guard guard(lock);
    queue[(first + free) % slot_count] = static_cast<std::uint16_t>(n);
    ++free;
}

const char* why_invalid(const void* p) {
    const Slot& slot = slot_near(p);
    const State state = slot.state.load(std::memory_order_acquire);
    if (state == State::unused) return "was never allocated";
    if (address_of(p) != slot.object) return "is not an allocated object";
    return state == State::freed ? "was freed already" : nullptr;
}

}  // namespace numalloc::guarded
