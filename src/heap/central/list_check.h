// Checks that would be too expensive for free(), made when lists return to their bags or pass to another thread: each
// link leads to the start of an object of the class, and no list is circular, as a second free would make it.
#pragma once

#include "heap/central/ring.h"
#include "heap/space/invalid.h"
#include "heap/space/region.h"

namespace numalloc {

// Checks single objects, for lists of one class.
//
// With the size 2^k * odd, and the inverse of odd modulo 2^32, offset * inverse rotated right by k is the quotient if
// the offset is a multiple of the size, and larger than any quotient otherwise (Granlund, Montgomery 1994).
class ObjectCheck {
public:
    ObjectCheck(const Region& region, ClassId c)
        : region_(region),
          class_(c),
          objects_(shape_of(c).objects),
          k_(static_cast<unsigned>(__builtin_ctz(shape_of(c).size))) {
        const std::uint32_t odd = shape_of(c).size >> k_;
        inverse_ = odd;  // correct in three bits; each step doubles them
        for (int i = 0; i < 4; ++i) inverse_ *= 2 - odd * inverse_;
        end_ = region.committed();
    }
    // Whether the object lies in a bag of the class. Safe for any pointer.
    bool in_class(const Object* o) const {
        const std::uint64_t b = (address_of(o) - region_.start()) >> bag_shift;
        return b < end_ && region_.class_at(BagIndex{b}) == class_;
    }
    // Whether an object starts at `o`, in the bag whose first object is at `first`.
    bool starts_object(const Object* o, Address first) const {
        const std::uint32_t offset = static_cast<std::uint32_t>(address_of(o) - first);
        const std::uint32_t product = offset * inverse_;
        return (product >> k_ | product << (32 - k_)) < objects_;
    }

private:
    const Region& region_;
    std::uint64_t end_;
    ClassId class_;
    std::uint32_t objects_;
    unsigned k_;
    std::uint32_t inverse_;
};

// Ends the program with one line if the list is damaged. Takes no lock; the caller owns the list. A wrong count is
// accepted: a signal handler that frees, which it must not, may have lost an object of ours.
void check_list(const Region& region, ClassId c, Batch list);

// End the program because of an object in a list.
[[noreturn]] void die_of_interior(const void* p);
[[noreturn]] void die_of_second_free(const void* p);

}  // namespace numalloc
