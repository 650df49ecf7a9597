// The hardened library's quarantine of a thread. A freed object can be allocated again only after a later free has
// displaced it at random. So a second free, or a write after the free, rarely hits a new object at the same address.
//
//   free -> a random place -> the object that was there -> the thread's lists
//
// Objects here have their marks, are cleared like any free object, and link to none. Marks and links are checked when
// objects leave, the cleared bytes when they are allocated. For the heap's thread only.
#pragma once

#include "base/random.h"
#include "heap/space/mark.h"

namespace numalloc {

namespace policy::quarantine {

// Each thread's quarantine keeps 256 freed objects of up to 4 KiB and 8 longer ones: about 1 MiB and 4 MiB at most.
constexpr Bytes large_from = size_for(4 * KiB);
constexpr std::uint32_t small_places = 256;
constexpr std::uint32_t large_places = 8;

}  // namespace policy::quarantine

class Quarantine {
public:
    // Puts `freed` into a random place. Returns the object that was there, or nullptr.
    Object* exchange(Object* freed, Bytes size) {
        const bool large = size > policy::quarantine::large_from;
        Object*& place =
            large ? large_[any_of(policy::quarantine::large_places)] : small_[any_of(policy::quarantine::small_places)];
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
    // A random number below `places`. The process's key is the seed.
    std::uint32_t any_of(std::uint32_t places) {
        if (!begun_) random_ = Random(mark_of(this, freed_key));
        begun_ = true;
        return random_.below(places);
    }

    Object* small_[policy::quarantine::small_places] = {};
    Object* large_[policy::quarantine::large_places] = {};
    Random random_{0};
    bool begun_ = false;
};

// For the other libraries: keeps no object.
class NoQuarantine {
public:
    Object* exchange(Object* freed, Bytes) { return freed; }
    template <class Visit>
    void empty(Visit) {}
};

}  // namespace numalloc
