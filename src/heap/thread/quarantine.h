// Where a thread of the hardened library keeps what it freed: an object serves again only after chance has chosen it to make
// room for another one. So who frees an object twice, or writes to it after its free, rarely meets another one there.
//
//   free -> a place by chance -> what was there -> the thread's lists
//
// Objects here carry their marks, and are as clear as any free one; their links lead nowhere. All that is looked at as they leave.
#pragma once

#include "heap/space/freed.h"

namespace numalloc {

class Quarantine {
public:
    // The object that makes room, or nullptr.
    Object* exchange(Object* freed, Bytes size) {
        const bool large = size > policy::quarantined_large;
        Object*& place = large ? large_[random() % policy::large_in_quarantine] : small_[random() % policy::small_in_quarantine];
        Object* const out = place;
        freed->next = nullptr;
        place = freed;
        return out;
    }
    template <class Visit>
    void empty(Visit visit) {
        const auto take_all = [&](auto& places) {
            for (Object*& place : places) {
                if (place != nullptr) visit(place);
                place = nullptr;
            }
        };
        take_all(small_);
        take_all(large_);
    }

private:
    // Marsaglia's xorshift64*. The key of the process is the seed.
    std::uint32_t random() {
        if (state_ == 0) state_ = mark_of(this, freed_key) | 1;
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return static_cast<std::uint32_t>(state_ * 0x2545'F491'4F6C'DD1DU >> 32);
    }

    Object* small_[policy::small_in_quarantine] = {};
    Object* large_[policy::large_in_quarantine] = {};
    std::uint64_t state_ = 0;
};

// Of the other libraries: every object makes room for itself.
class NoQuarantine {
public:
    Object* exchange(Object* freed, Bytes) { return freed; }
    template <class Visit>
    void empty(Visit) {}
};

}  // namespace numalloc
