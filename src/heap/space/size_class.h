// Size classes: the sizes that small objects are rounded up to, and the length of a bag of each class.
//
//   1 ... 32     16, 32, 48 ... 512         16-byte steps
//   33 ... 47    576 ... 1920               8 classes a doubling, at most 1/9 waste
//   48 ... 95    2112 ... 122,944           8 a doubling, at most 1/9 waste, each a line longer (2 KiB + 64 ...)
//   96           128 KiB
//   97 ... 104   160 KiB ... 512 KiB        4 classes a doubling, at most 1/5 waste
//   105 ... 140  256 ... 112 KiB            4 a doubling, only for alignments above a line
//
// Lines whose addresses differ by a multiple of 4 KiB share one set of a first-level cache, of 8 or 12 lines. A program
// that reads the same line of many objects (a column of a matrix whose rows are objects) would evict one with the next.
// So classes 48 to 95 are odd multiples of a line: the objects of a bag begin in different sets. And with the other
// multiples of a line from 256 on they are coloured: the first object of a bag begins at one of the lines that the tail
// of the bag leaves (Bonwick 1994). A bag of 256, 512 or 1024 bytes has an object less, to have a tail.
//
//   bag   | colour | object | object | object |  rest of the tail |     colour in [0, tail], by the bag's number
//
// The other sizes in [2^e, 2^(e+1)) are multiples of 2^(e-3) (of 2^(e-2) from 97 on). Every size above 512 bytes is a
// multiple of a line, a bag begins at a multiple of 32 KiB, and colours are whole lines; the classes for alignments,
// and those up to 224 bytes and from 128 KiB on, have none. Hence class_of(align_up(n, a), a) is aligned to a for every
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

constexpr Bytes line = 64;
constexpr Bytes tiny_limit = 512;          // up to here a class a granule
constexpr Bytes medium_limit = 128 * KiB;  // up to here medium_steps classes a doubling
constexpr Bytes small_limit = 512 * KiB;   // above: big objects
constexpr unsigned tiny_classes = tiny_limit / granule;
constexpr unsigned medium_bits = 3, medium_steps = 1 << medium_bits;  // classes a doubling
constexpr unsigned large_bits = 2, large_steps = 1 << large_bits;
constexpr unsigned medium_from = log2_floor(tiny_limit), large_from = log2_floor(medium_limit);  // their first doubling
constexpr unsigned medium_classes = (large_from - medium_from) * medium_steps;
constexpr unsigned large_classes = (log2_floor(small_limit) - large_from) * large_steps;
// Medium classes between spread_from and medium_limit are a line longer; below_spread is the largest class before them.
constexpr Bytes spread_from = 2 * KiB, below_spread = 1920;
// The classes for alignments above a line, from aligned_from to medium_limit: they have no colours. Up to below_aligned
// and from medium_limit on no class has.
constexpr Bytes aligned_from = 256, below_aligned = 224;
constexpr unsigned aligned_bits = 2, aligned_steps = 1 << aligned_bits;
constexpr unsigned first_aligned = 1 + tiny_classes + medium_classes + large_classes;
constexpr unsigned aligned_classes = (large_from - log2_floor(aligned_from)) * aligned_steps;
constexpr unsigned class_count = first_aligned + aligned_classes;

// malloc reads the class from two tables: by bytes up to 1984, by 128 bytes up to table_limit. An entry of the second
// ends a line behind a multiple of 128, where classes end. Computing the class up to tiny_limit instead would need a
// branch there, which sizes on both sides of 512 bytes mispredict. Above table_limit a batch is one object.
constexpr Bytes fine_limit = below_spread + line;
constexpr Bytes table_limit = 32 * KiB + line;
constexpr unsigned coarse_shift = 7;
constexpr Bytes coarse_entry(Bytes n) { return (n - line + (Bytes{1} << coarse_shift) - 1) >> coarse_shift; }
constexpr unsigned coarse_entries = static_cast<unsigned>(coarse_entry(table_limit)) + 1;
constexpr Bytes end_of_coarse(unsigned i) { return (Bytes{i} << coarse_shift) + line; }

// The class of a size in [1, small_limit], for alignments up to a line.
constexpr ClassId class_of(Bytes n) {
    if (n <= tiny_limit) return ClassId{static_cast<unsigned>((n + granule - 1) >> granule_shift)};
    const bool medium = n <= medium_limit;
    const Bytes m = (medium && n > below_spread ? max_of(n - line, below_spread + 1) : n) - 1;
    const unsigned e = log2_floor(m);
    const unsigned bits = medium ? medium_bits : large_bits;
    const unsigned doubling = (e - (medium ? medium_from : large_from)) << bits;
    const unsigned before = 1 + tiny_classes + (medium ? 0 : medium_classes);
    return ClassId{static_cast<unsigned>(before + doubling + ((m >> (e - bits)) & ((1U << bits) - 1)))};
}

constexpr Bytes size_of_class(unsigned c) {
    if (c <= tiny_classes) return c * granule;
    if (c <= tiny_classes + medium_classes) {
        const unsigned i = c - tiny_classes - 1;
        const unsigned shift = medium_from + i / medium_steps - medium_bits;
        const Bytes size = (Bytes{medium_steps} + 1 + i % medium_steps) << shift;
        return size >= spread_from && size < medium_limit ? size + line : size;
    }
    if (c >= first_aligned) {
        const unsigned i = c - first_aligned;
        return aligned_from / aligned_steps * (aligned_steps + i % aligned_steps) << i / aligned_steps;
    }
    const unsigned i = c - tiny_classes - medium_classes - 1;
    return (Bytes{large_steps} + 1 + i % large_steps) << (large_from + i / large_steps - large_bits);
}
// Whether the objects of the class may begin at any line: no request relies on their being aligned better.
constexpr bool is_coloured(unsigned c) {
    const Bytes size = size_of_class(c);
    return c < first_aligned && size >= aligned_from && size < medium_limit && size % line == 0;
}
// The size of the class that serves n bytes, a tail included.
constexpr Bytes size_for(Bytes n) { return size_of_class(class_of(n).value); }
// The smallest size that the class serves, c > 0.
constexpr Bytes smallest_of_class(unsigned c) {
    return c == first_aligned ? below_aligned + 1 : size_of_class(c - 1) + 1;
}

// Whether the class of `n` bytes with this alignment may differ from class_of(n).
constexpr bool has_aligned_class(Bytes n, Bytes alignment) {
    return alignment > line && n > below_aligned && n <= medium_limit;
}
// The class of a size in [1, small_limit] that is a multiple of `alignment`, a power of two of at most bag_bytes.
constexpr ClassId class_of(Bytes n, Bytes alignment) {
    if (!has_aligned_class(n, alignment)) return class_of(n);
    const Bytes m = n - 1;
    const unsigned e = log2_floor(m);
    const unsigned step = static_cast<unsigned>(m >> (e - aligned_bits)) % aligned_steps;
    const unsigned i = (e + 1 - log2_floor(aligned_from)) * aligned_steps + step + 1 - aligned_steps;
    return i < aligned_classes ? ClassId{first_aligned + i} : class_of(medium_limit);
}

// What the slow paths need to know of a class; computed by the compiler.
struct ClassShape {
    std::uint32_t size;     // bytes of an object
    std::uint32_t inverse;  // ceil(2^31 / granules of an object), for object_at
    std::uint16_t objects;  // objects in a bag
    std::uint16_t batch;    // most objects of a batch, the unit of transfer
    std::uint16_t colours;  // lines of a bag at which its first object may begin
    std::uint8_t bags;      // length of a bag of this class, in bags of 32 KiB
    std::uint8_t ring;      // batches that a whole ring keeps
};
static_assert(sizeof(ClassShape) == 16);

namespace policy::classes {

// The unusable tail of a bag is at most 1/16 of it below 32 KiB, and 1/8 from there on, where a shorter one would need
// longer bags, which are seldom free as a whole. A class whose tail would be longer gets longer bags. With the rounding
// up to the class at most 1/5 of a bag is wasted for each size from 100 bytes on; with an alignment above a line 1/4,
// beside the rounding of the size up to the alignment (size_class_test.cpp).
constexpr Bytes lost_part = 16;
constexpr Bytes lost_part_from_32k = 8;
// The lines at which the objects of a coloured class may begin, at least: they lie in half of the sets of a first-level
// cache or more.
constexpr Bytes least_places = 48;

// Bytes of a batch for objects of `size` bytes, and the most objects of a batch. Longer batches need fewer refills, but
// one malloc links a whole batch, and a thread keeps some three batches of a class.
constexpr Bytes batch_target(Bytes size) { return size <= 512 ? 8 * KiB : 25 * KiB; }
constexpr Bytes most_in_batch = 512;

// Capacity of a ring, in bytes: it bounds the free memory that waits for other threads. ClassHeap::ring_room() has more
// for short lists of large objects, and less for each of many shards.
constexpr Bytes ring_target = 128 * KiB;

}  // namespace policy::classes

constexpr ClassShape shape_of_class(unsigned c) {
    ClassShape s{};
    if (c == 0) return s;
    const Bytes size = size_of_class(c);
    const bool coloured = is_coloured(c);
    const Bytes lost = size >= 32 * KiB ? policy::classes::lost_part_from_32k : policy::classes::lost_part;
    Bytes bags = divide_up(size, bag_bytes) - 1, bytes = 0, objects = 0, tail = 0, colours = 0;
    do {
        bytes = ++bags * bag_bytes;
        objects = bytes / size - (coloured && bytes % size == 0 ? 1 : 0);
        tail = bytes - objects * size;
        colours = coloured ? tail / line + 1 : 1;
    } while (tail * lost > bytes || (coloured && objects * colours < policy::classes::least_places));
    Bytes batch = min_of(policy::classes::batch_target(size) / size, policy::classes::most_in_batch);
    // A multiple of four keeps objects that two threads carve from one bag on different cache lines.
    if (batch > 4) batch &= ~Bytes{3};
    if (batch < 2) batch = size <= table_limit ? 2 : 1;
    const Bytes ring = min_of<Bytes>(policy::classes::ring_target / (batch * size), policy::rings::slots);
    s.size = static_cast<std::uint32_t>(size);
    s.inverse = static_cast<std::uint32_t>(divide_up(Bytes{1} << 31, size / granule));
    s.objects = static_cast<std::uint16_t>(objects);
    s.batch = static_cast<std::uint16_t>(batch);
    s.colours = static_cast<std::uint16_t>(colours);
    s.bags = static_cast<std::uint8_t>(bags);
    s.ring = static_cast<std::uint8_t>(ring);
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

// Where the first object of a bag begins, in bytes from the bag's start: one of the class's colours, by the bag's
// number. The multiplier is 2^32 divided by the golden ratio: bags in a row get colours far apart.
inline Bytes first_of(ClassId c, BagIndex b) {
    const std::uint32_t mixed = b.value * 0x9E37'79B9U;
    return (Bytes{mixed} * shape_of(c).colours >> 32) * line;
}

static_assert(spread_from / medium_steps >= Bytes{1} << coarse_shift, "an entry of the coarse table has one class");
static_assert(coarse_entry(fine_limit + 1) << coarse_shift == spread_from,
              "and the first one begins behind fine_limit");
static_assert(class_count <= 256, "the bag map has one byte a bag");
static_assert(size_of_class(class_of(below_spread).value) == below_spread);
static_assert(size_of_class(class_of(below_spread).value + 1) == spread_from + line);
static_assert(size_of_class(first_aligned - 1) == small_limit);
static_assert(size_of_class(tiny_classes + medium_classes) == medium_limit);
static_assert(
    [] {
        for (unsigned c = class_of(table_limit).value + 1; c < first_aligned; ++c)
            if (!is_coloured(c) && size_of_class(c) % bag_bytes != 0) return false;
        return true;
    }(),
    "an object of a class above table_limit is aligned at least like those of smaller ones: ClassHeap::take_larger()");
static_assert([] {
    for (const ClassShape& shape : class_shapes.row)
        if (shape.bags * bag_bytes > longest_bag) return false;
    return true;
}());

}  // namespace numalloc
