// Size classes: the promises of size_class.h, for every size there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "heap/space/size_class.h"

namespace numalloc {
namespace {

template <class Each>
void for_each_class(Each each) {
    for (unsigned c = 1; c < class_count; ++c) each(ClassId{c}, shape_of(ClassId{c}));
}

TEST(SizeClass, EverySizeFitsTheSmallestClassThatHoldsIt) {
    for (Bytes n = 1; n <= small_limit; ++n) {
        const unsigned c = class_of(n).value;
        ASSERT_GT(c, 0u) << n;
        ASSERT_LT(c, class_count) << n;
        ASSERT_LE(n, size_of_class(c)) << n;
        ASSERT_LT(c, first_aligned) << n;
        ASSERT_GE(n, smallest_of_class(c)) << n;
    }
}

TEST(SizeClass, ClassesAscend) {
    for (unsigned c = 1; c < class_count; ++c) ASSERT_GE(size_of_class(c), smallest_of_class(c)) << c;
    EXPECT_EQ(size_of_class(tiny_classes), tiny_limit);
    EXPECT_EQ(size_of_class(tiny_classes + medium_classes), medium_limit);
    EXPECT_EQ(size_of_class(first_aligned - 1), small_limit);
    EXPECT_EQ(size_of_class(first_aligned), 256);
    EXPECT_EQ(size_of_class(class_count - 1), 112 * KiB);
}

// Beyond 128 bytes at most a fifth of an object is waste; the ninth that the header promises for
// the medium classes is checked with it. Below, the 16-byte step is the bound.
TEST(SizeClass, InternalWasteIsBounded) {
    for (Bytes n = 1; n <= small_limit; ++n) {
        const Bytes size = size_of_class(class_of(n).value);
        if (n <= tiny_limit) {
            ASSERT_LT(size - n, granule) << n;
        } else if (n <= medium_limit) {
            ASSERT_LE((size - n) * 9, size) << n;
        }
        if (n > 128) {
            ASSERT_LE((size - n) * 5, size) << n;
        }
    }
}

TEST(SizeClass, AtLeastFourClassesADoublingAbove128) {
    for (Bytes n = 128; n < small_limit; n *= 2) ASSERT_GE(class_of(2 * n).value - class_of(n).value, 4) << n;
}

// The theorem of the header: the class of a rounded size is aligned by itself, at every place in
// its bag, because a bag begins at a multiple of 32 KiB.
TEST(SizeClass, RoundedSizesAreNaturallyAligned) {
    for (Bytes alignment = 1; alignment <= bag_bytes; alignment *= 2)
        for (Bytes n = 1; n <= small_limit; ++n) {
            const Bytes rounded = align_up(n, alignment);
            if (rounded > small_limit) break;
            const unsigned c = class_of(rounded, alignment).value;
            ASSERT_EQ(size_of_class(c) % alignment, 0u) << n << " to " << alignment;
            ASSERT_LE(rounded, size_of_class(c)) << n << " to " << alignment;
            if (rounded > tiny_limit) {
                ASSERT_LE((size_of_class(c) - rounded) * 5, size_of_class(c)) << n << " to " << alignment;
            }
        }
}

// A column of a matrix whose rows are objects, say: no two objects of a bag begin in one set of a first-level cache.
TEST(SizeClass, ObjectsBetween2And120KiBBeginInDifferentSets) {
    constexpr unsigned sets = 64;
    for (Bytes n = 1921; n <= 120 * KiB + line; ++n) {
        const ClassShape& s = shape_of(class_of(n));
        unsigned in_set[sets] = {};
        for (unsigned i = 0; i < s.objects; ++i) ASSERT_EQ(++in_set[Bytes{i} * s.size / line % sets], 1u) << n;
    }
}

// Nor do many of those that are the first ones of their bags. The bags of a class lie anywhere, mostly in a row.
TEST(SizeClass, BagsBeginInDifferentSets) {
    constexpr unsigned sets = 64, bags = 512;
    for_each_class([](ClassId c, const ClassShape& s) {
        for (const unsigned apart : {unsigned{s.bags}, s.bags + 3U}) {
            unsigned in_set[sets] = {};
            for (unsigned i = 0; i < bags; ++i) {
                const Bytes first = first_of(c, BagIndex{7 + i * apart});
                ASSERT_EQ(first % line, 0u);
                ASSERT_LE(first + Bytes{s.objects} * s.size, Bytes{s.bags} * bag_bytes) << int{c.value};
                ++in_set[first / line % sets];
            }
            const unsigned most = *std::max_element(in_set, in_set + sets);
            ASSERT_LE(most, 3 * bags / min_of<unsigned>(s.colours, sets)) << int{c.value} << " every " << apart;
        }
    });
}

TEST(SizeClass, ObjectsOf256BytesTo120KiBBeginInHalfOfTheSetsAtLeast) {
    constexpr unsigned sets = 64;
    for_each_class([](ClassId c, const ClassShape& s) {
        const bool lines = s.size % line == 0;
        const bool coloured = c.value < first_aligned && s.size >= 256 && s.size < medium_limit && lines;
        EXPECT_EQ(s.colours > 1, coloured) << int{c.value};
        if (!coloured) return;
        std::set<Bytes> begins;
        for (unsigned i = 0; i < s.objects; ++i)
            for (unsigned colour = 0; colour < s.colours; ++colour) begins.insert((i * s.size / line + colour) % sets);
        EXPECT_GE(begins.size(), sets / 2) << int{c.value};
    });
}

TEST(SizeClass, ObjectAtIsExactForEveryByteOfABag) {
    for_each_class([](ClassId c, const ClassShape& s) {
        for (Bytes offset = 0; offset < Bytes{s.bags} * bag_bytes; ++offset)
            ASSERT_EQ(object_at(c, offset), offset / s.size) << "class " << int{c.value} << " offset " << offset;
    });
}

TEST(SizeClass, BagsAreFullAndWasteLittle) {
    for_each_class([](ClassId c, const ClassShape& s) {
        const Bytes bag = Bytes{s.bags} * bag_bytes;
        ASSERT_GE(s.objects, 1u);
        ASSERT_LE(Bytes{s.objects} * s.size, bag);
        ASSERT_LE(bag - Bytes{s.objects} * s.size, s.size) << "room for one more, class " << int{c.value};
        ASSERT_TRUE(s.colours > 1 || bag - Bytes{s.objects} * s.size < s.size) << int{c.value};
        ASSERT_LE((bag - Bytes{s.objects} * s.size) * (s.size < bag_bytes ? 16 : 8), bag) << int{c.value};
        // object_at() needs it, and so does the 16-bit count of a bag.
        ASSERT_LE(bag, Bytes{1} << 19);
        // What a whole bag costs each object, beside its own size.
        const Bytes per_object = bag / s.objects;
        ASSERT_LE((per_object - s.size) * 8, per_object) << int{c.value};
    });
}

TEST(SizeClass, BatchesAndRingsStayInBounds) {
    for_each_class([](ClassId c, const ClassShape& s) {
        ASSERT_GE(s.batch, 1u);
        ASSERT_LE(s.batch, 512u);
        ASSERT_LE(s.ring, policy::rings::slots);
        if (s.size > table_limit) {
            ASSERT_EQ(s.batch, 1u) << "paper 3.4: one object at a time, class " << int{c.value};
        } else ASSERT_GE(s.batch, 2u) << int{c.value};
        if (s.batch > 2) {
            ASSERT_LE(Bytes{s.batch} * s.size, policy::classes::batch_target(s.size)) << int{c.value};
        }
        ASSERT_LE(Bytes{s.ring} * s.batch * s.size, policy::classes::ring_target) << int{c.value};
    });
}

// malloc's tables: all sizes of an entry must have its class, or one of them would get too small a block.
TEST(SizeClass, TablesHaveTheClassOfEachSize) {
    for (Bytes n = 1; n <= fine_limit; ++n) ASSERT_EQ(fine_classes.of[n], class_of(n).value) << n;
    EXPECT_EQ(fine_classes.of[0], class_of(1).value);
    for (Bytes n = fine_limit + 1; n <= table_limit; ++n) {
        const auto entry = static_cast<unsigned>(coarse_entry(n));
        ASSERT_LT(entry, coarse_entries) << n;
        ASSERT_LE(n, end_of_coarse(entry)) << n;
        ASSERT_EQ(class_up_to(end_of_coarse(entry)), class_of(n).value) << n;
    }
}

// Rounding up to the class and the tail of the bag together: what is promised for JArena's patches.
TEST(SizeClass, NoSizeFromAHundredBytesOnLosesMoreThanAFifth) {
    for (unsigned c = 7; c < class_count; ++c) {
        const ClassShape& s = shape_of(ClassId{c});
        // The classes for alignments waste a fifth by themselves.
        const unsigned part = c < first_aligned ? 5 : 4;
        ASSERT_GE(part * smallest_of_class(c) * s.objects, (part - 1) * s.bags * bag_bytes) << "class " << c;
    }
}

}  // namespace
}  // namespace numalloc
