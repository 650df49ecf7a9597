// The slots of guarded objects: each is a page of its own, between two pages without access.
//
//   | guard | slot 0 | guard | slot 1 | guard | ...      all without access, except slots in use
//
// A freed slot has no access either, and becomes the last of the free ones. Its record stays until the slot is used
// again: the handler of a fault there reads it without a lock.
#pragma once

#include <atomic>

#include "base/ids.h"
#include "os/lock.h"

namespace numalloc::guarded {

constexpr unsigned slot_count = 256;
constexpr unsigned deepest_stack = 32;

struct Event {
    int thread = 0;
    unsigned depth = 0;
    Address frame[deepest_stack];
};

enum class State : std::uint8_t { unused, used, freed };

struct Slot {
    std::atomic<State> state{State::unused};
    Address object = 0;
    Bytes bytes = 0;  // the requested size
    NodeId node{0};
    Event allocated;
    Event freed;
};

struct Slots {
    Address begin = 0;  // of the first guard page
    Bytes page = 0;
    Slot slot[slot_count];

    os::Lock<os::LockRank::profile> lock;
    unsigned first NUMALLOC_GUARDED_BY(lock) = 0;  // index in `queue` of the slot that was freed first
    unsigned free NUMALLOC_GUARDED_BY(lock) = slot_count;
    std::uint16_t queue[slot_count] NUMALLOC_GUARDED_BY(lock);

    Address page_of(unsigned n) const { return begin + (2 * Bytes{n} + 1) * page; }
    // The slot whose page, or the guard page before it, has the address. The last guard page belongs to the last slot.
    unsigned near(Address a) const {
        const Bytes n = (a - begin) / page / 2;
        return n < slot_count ? static_cast<unsigned>(n) : slot_count - 1;
    }
    // Returns a free slot's number; slot_count if all are in use.
    unsigned take() NUMALLOC_EXCLUDES(lock);
    void give(unsigned n) NUMALLOC_EXCLUDES(lock);
};

// Constant once the process has its heap; nullptr and 0 if the process guards no objects.
extern Slots* slots;
extern Address region_begin;
extern Bytes region_bytes;

inline bool contains(const void* p) { return address_of(p) - region_begin < region_bytes; }

// false if out of memory.
bool make_slots();

// Returns why `p`, which is in the region, is not an object in use, or nullptr.
const char* why_invalid(const void* p);
inline Slot& slot_near(const void* p) { return slots->slot[slots->near(address_of(p))]; }

}  // namespace numalloc::guarded
