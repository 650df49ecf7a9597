// Size classes: the sizes that small objects are rounded up to, and the length of a bag of each class.
//
//   1 ... 32     16, 32, 48 ... 512         16-byte steps
//   33 ... 80    576 ... 32 KiB             8 classes a doubling, at most 1/9 waste
//   81 ... 96    40 KiB ... 512 KiB         4 classes a doubling, at most 1/5 waste
//
// A class size in [2^e, 2^(e+1)) is a multiple of 2^(e-3) (of 2^(e-2) above 32 KiB) and a bag
// begins at a multiple of 32 KiB. Hence class_of(align_up(n, a)) is aligned to a for every
// power of two a <= 32 KiB, and no object ever needs an interior pointer.
#pragma once

#include "base/bits.h"
#include "base/ids.h"
#include "heap/space/policy.h"

namespace numalloc {

constexpr unsigned bag_shift = 15;
constexpr Bytes bag_bytes = Bytes{1} << bag_shift;
constexpr std::uint32_t bags_in(Bytes bytes) { return static_cast<std::uint32_t>(bytes >> bag_shift); }

constexpr unsigned granule_shift = 4;
constexpr Bytes granule = Bytes{1} << granule_shift;

constexpr Bytes tiny_limit = 512;         // up to here a class a granule
constexpr Bytes medium_limit = 32 * KiB;  // up to here medium_steps classes a doubling
constexpr Bytes small_limit = 512 * KiB;  // above: big objects
constexpr unsigned tiny_classes = tiny_limit / granule;
constexpr unsigned medium_bits = 3, medium_steps = 1 << medium_bits;  // classes a doubling
constexpr unsigned large_bits = 2, large_steps = 1 << large_bits;
constexpr unsigned medium_from = log2_floor(tiny_limit), large_from = log2_floor(medium_limit);  // their first doubling
constexpr unsigned medium_classes = (large_from - medium_from) * medium_steps;
constexpr unsigned large_classes = (log2_floor(small_limit) - large_from) * large_steps;
constexpr unsigned class_count = 1 + tiny_classes + medium_classes + large_classes;

// malloc reads the class from two tables: by bytes up to 1 KiB, by 128 bytes (1152 - 1024) up to 32 KiB. Computing it
// up to tiny_limit instead would need a branch there, which sizes on both sides of 512 bytes mispredict.
constexpr Bytes fine_limit = 1024;
constexpr unsigned coarse_shift = 7;
constexpr unsigned coarse_entries = (medium_limit >> coarse_shift) + 1;

// The class of a size in [1, small_limit].
constexpr ClassId class_of(Bytes n) {
    if (n <= tiny_limit) return ClassId{static_cast<unsigned>((n + granule - 1) >> granule_shift)};
    const Bytes m = n - 1;
    const unsigned e = log2_floor(m);
    const bool medium = n <= medium_limit;
    const unsigned bits = medium ? medium_bits : large_bits;
    const unsigned doubling = (e - (medium ? medium_from : large_from)) << bits;
    const unsigned before = 1 + tiny_classes + (medium ? 0 : medium_classes);
    return ClassId{static_cast<unsigned>(before + doubling + ((m >> (e - bits)) & ((1U << bits) - 1)))};
}

constexpr Bytes size_of_class(unsigned c) {
    if (c <= tiny_classes) return c * granule;
    if (c <= tiny_classes + medium_classes) {
        const unsigned i = c - tiny_classes - 1;
        return (Bytes{medium_steps} + 1 + i % medium_steps) << (medium_from + i / medium_steps - medium_bits);
    }
    const unsigned i = c - tiny_classes - medium_classes - 1;
    return (Bytes{large_steps} + 1 + i % large_steps) << (large_from + i / large_steps - large_bits);
}

// What the slow paths need to know of a class; computed by the compiler.
struct ClassShape {
    std::uint32_t size;     // bytes of an object
    std::uint32_t inverse;  // ceil(2^31 / granules of an object), for object_at
    std::uint16_t bags;     // length of a bag of this class, in bags of 32 KiB
    std::uint16_t objects;  // objects in such a bag
    std::uint16_t batch;    // most objects of a batch, the unit of transfer
    std::uint16_t ring;     // batches that a whole ring keeps
};

namespace policy::classes {

// The unusable tail of a bag is at most 1/8 of it up to 32 KiB, where rounding up to the class costs at most 1/9 more,
// and 1/17 above, where rounding costs up to 1/5. A class whose tail would be longer gets longer bags. Both together
// waste at most 1/5 of a bag, for each size from 100 bytes on (size_class_test.cpp).
constexpr Bytes lost_part = 8;
constexpr Bytes lost_part_of_large = 17;

// Bytes of a batch for objects of `size` bytes, and the most objects of a batch. Longer batches need fewer refills, but
// one malloc links a whole batch, and a thread keeps some three batches of a class.
constexpr Bytes batch_target(Bytes size) { return size <= 512 ? 8 * KiB : 24 * KiB; }
constexpr Bytes most_in_batch = 512;

// Capacity of a ring, in bytes: it bounds the free memory that waits for other threads. ClassHeap::ring_room() has more
// for short lists of large objects, and less for each of many shards.
constexpr Bytes ring_target = 128 * KiB;

}  // namespace policy::classes

constexpr ClassShape shape_of_class(unsigned c) {
    ClassShape s{};
    if (c == 0) return s;
    const Bytes size = size_of_class(c);
    Bytes bags = divide_up(size, bag_bytes);
    const Bytes tails = size > medium_limit ? policy::classes::lost_part_of_large : policy::classes::lost_part;
    while ((bags * bag_bytes) % size * tails > bags * bag_bytes) ++bags;
    Bytes batch = min_of(policy::classes::batch_target(size) / size, policy::classes::most_in_batch);
    // A multiple of four keeps objects that two threads carve from one bag on different cache lines.
    if (batch > 4) batch &= ~Bytes{3};
    if (batch < 2) batch = size <= medium_limit ? 2 : 1;
    const Bytes ring = min_of<Bytes>(policy::classes::ring_target / (batch * size), policy::rings::slots);
    s.size = static_cast<std::uint32_t>(size);
    s.inverse = static_cast<std::uint32_t>(divide_up(Bytes{1} << 31, size / granule));
    s.bags = static_cast<std::uint16_t>(bags);
    s.objects = static_cast<std::uint16_t>(bags * bag_bytes / size);
    s.batch = static_cast<std::uint16_t>(batch);
    s.ring = static_cast<std::uint16_t>(ring);
    return s;
}

struct ClassShapes {
    ClassShape row[class_count];
};
constexpr ClassShapes make_class_shapes() {
    ClassShapes t{};
    for (unsigned c = 0; c < class_count; ++c) t.row[c] = shape_of_class(c);
    return t;
}
inline constexpr ClassShapes class_shapes = make_class_shapes();

// A request for no bytes has the class of one byte.
constexpr std::uint8_t class_up_to(Bytes n) { return class_of(n == 0 ? 1 : n).value; }
struct FineClasses {
    std::uint8_t of[fine_limit + 1];
};
constexpr FineClasses make_fine_classes() {
    FineClasses t{};
    for (Bytes n = 0; n <= fine_limit; ++n) t.of[n] = class_up_to(n);
    return t;
}
alignas(64) inline constexpr FineClasses fine_classes = make_fine_classes();

inline const ClassShape& shape_of(ClassId c) { return class_shapes.row[c.value]; }

// The index of the object in its bag that contains the offset. Exact for offset < longest_bag = 2^19: counted in
// granules offset is below 2^15 and size at most 2^15, so the error offset * r / (size * 2^31), with r < size, is below
// 2^-16 < 1 / size.
constexpr Bytes longest_bag = Bytes{1} << 19;
inline unsigned object_at(ClassId c, Bytes offset) {
    return static_cast<unsigned>(((static_cast<std::uint64_t>(offset) >> granule_shift) * shape_of(c).inverse) >> 31);
}

static_assert(fine_limit / medium_steps >= Bytes{1} << coarse_shift, "an entry of the coarse table has one class");
static_assert(class_count <= 256, "the bag map has one byte a bag");
static_assert(size_of_class(class_count - 1) == small_limit);
static_assert(size_of_class(tiny_classes + medium_classes) == medium_limit);
static_assert([] {
    for (const ClassShape& shape : class_shapes.row)
        if (shape.bags * bag_bytes > longest_bag) return false;
    return true;
}());

}  // namespace numalloc
