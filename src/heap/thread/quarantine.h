// Where a thread of the hardened library keeps what it freed: an object serves again only after chance has chosen it to
// make room for another one. So who frees an object twice, or writes to it after its free, rarely meets another one
// there.
//
//   free -> a place by chance -> what was there -> the thread's lists
//
// Objects here carry their marks, and are as clear as any free one; their links lead nowhere. All that is looked at as
// they leave.
#pragma once

#include "base/random.h"
#include "heap/space/freed.h"

namespace numalloc {

class Quarantine {
public:
    // The object that makes room, or nullptr.
    Object* exchange(Object* freed, Bytes size) {
        const bool large = size > policy::quarantined_large;
        Object*& place =
            large ? large_[any_of(policy::large_in_quarantine)] : small_[any_of(policy::small_in_quarantine)];
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
    // A random place below `places`. The process's key is the seed.
    std::uint32_t any_of(std::uint32_t places) {
        if (!begun_) random_ = Random(mark_of(this, freed_key));
        begun_ = true;
        return random_.below(places);
    }

    Object* small_[policy::small_in_quarantine] = {};
    Object* large_[policy::large_in_quarantine] = {};
    Random random_{0};
    bool begun_ = false;
};

// Of the other libraries: every object makes room for itself.
class NoQuarantine {
public:
    Object* exchange(Object* freed, Bytes) { return freed; }
    template <class Visit>
    void empty(Visit) {}
};

}  // namespace numalloc
