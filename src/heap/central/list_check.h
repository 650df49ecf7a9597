// What free() has no instructions left to ask, asked of its lists when they go back to their bags or
// to another thread: that each object is the start of one of its class, and that no list is a ring,
// which an object freed twice into it makes of it.
#pragma once

#include "heap/central/ring.h"
#include "heap/space/invalid.h"
#include "heap/space/region.h"

namespace numalloc {

// The questions asked of one object, for lists of one class. Some ten instructions.
//
// With the size 2^k * odd, and the inverse of odd modulo 2^32, offset * inverse turned right by k is
// the quotient of a multiple of the size, and larger than any quotient for all else (Granlund,
// Montgomery 1994).
class ObjectCheck {
public:
    ObjectCheck(const Region& region, ClassId c)
        : region_(region),
          class_(c),
          objects_(shape_of(c).objects),
          k_(static_cast<unsigned>(__builtin_ctz(shape_of(c).size))) {
        const std::uint32_t odd = shape_of(c).size >> k_;
        inverse_ = odd;  // right in three bits; each step doubles them
        for (int i = 0; i < 4; ++i) inverse_ *= 2 - odd * inverse_;
        end_ = region.committed();
    }
    // Safe for any pointer: whether it lies in a bag of the class.
    bool in_class(const Object* o) const {
        const std::uint64_t b = (address_of(o) - region_.start()) >> bag_shift;
        return b < end_ && region_.class_at(BagIndex{b}) == class_;
    }
    // Whether it is where an object of the bag that begins at `bag` does.
    bool starts_object(const Object* o, Address bag) const {
        const std::uint32_t offset = static_cast<std::uint32_t>(address_of(o) - bag);
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

// Ends the program with one line when the list is not sound. Takes no lock; the list is the caller's
// alone. A count that is not quite right is let pass: a signal handler that frees, which it must not,
// may have lost an object of ours.
void check_list(const Region& region, ClassId c, Batch list);

// The ends of a program of which one object of a list is wrong.
[[noreturn]] void die_of_interior(const void* p);
[[noreturn]] void die_of_second_free(const void* p);

}  // namespace numalloc
