// The heap profile's arithmetic, its table, and its stacks.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <unordered_map>

#include "heap/profile/sampling.h"
#include "heap/profile/stack_table.h"
#include "heap/profile/table.h"
#include "heap/profile/write.h"

namespace numalloc::profile {
namespace {

TEST(ProfileSampling, ArithmeticIsThatOfTheMathematicalLibrary) {
    for (double x = 1e-12; x < 80; x *= 1.3) EXPECT_NEAR(one_minus_exp(x) / -std::expm1(-x), 1.0, 1e-12) << x;
    EXPECT_EQ(one_minus_exp(0), 0);
    std::mt19937_64 random(1);
    for (int i = 0; i < 10000; ++i) {
        const std::uint64_t r = random();
        const double u = static_cast<double>((r >> 11) + 1) * 0x1p-53;
        EXPECT_NEAR(exponential(r), -std::log(u), 1e-12 * (1 - std::log(u)));
    }
    EXPECT_NEAR(exponential(0), 53 * std::log(2.0), 1e-9);
    EXPECT_EQ(exponential(~std::uint64_t{0}), 0);
}

// Mallocs before the recorded one, and one by one: both are the same process.
TEST(ProfileSampling, RecordsAreAsLikelyAsBytesSay) {
    Random random(7);
    for (const Bytes size : {Bytes{16}, Bytes{1000}, Bytes{32768}, Bytes{512 * KiB}, 4 * MiB}) {
        const Sampling sampling{.period = 64 * KiB};
        const double p = sampling.chance(size);
        EXPECT_NEAR(sampling.weight(size) * p, 1, 1e-12);
        constexpr int n = 200000;
        double sum = 0;
        int chosen = 0;
        for (int i = 0; i < n; ++i) {
            sum += sampling.distance(size, random.next());
            chosen += sampling.chooses(size, random.next()) ? 1 : 0;
        }
        // Geometric: mean (1 - p) / p, deviation sqrt(1 - p) / p.
        EXPECT_NEAR(sum / n, (1 - p) / p, 5 * std::sqrt((1 - p) / n) / p + 1e-9) << size;
        EXPECT_NEAR(chosen / double{n}, p, 5 * std::sqrt(p * (1 - p) / n) + 1e-9) << size;
    }
}

struct Number {
    std::uint64_t number = 0;
    std::uint64_t value = 0;
    std::uint64_t key() const { return number; }
    bool used() const { return number != 0; }
    static std::uint64_t hash(std::uint64_t n) { return n & 63; }  // collides often
};

TEST(ProfileTable, DoesWhatAMapDoes) {
    Table<Number> table;
    std::unordered_map<std::uint64_t, std::uint64_t> expected;
    std::mt19937_64 random(3);
    EXPECT_EQ(table.find(std::uint64_t{5}), nullptr);
    for (int i = 0; i < 20000; ++i) {
        const std::uint64_t n = 1 + random() % 300;
        if (random() % 2 == 0) {
            Number* const place = table.find_or_add(n);
            ASSERT_NE(place, nullptr);
            *place = {n, static_cast<std::uint64_t>(i)};
            expected[n] = static_cast<std::uint64_t>(i);
        } else if (Number* const found = table.find(n)) {
            ASSERT_EQ(expected.erase(n), 1u);
            table.remove(found);
        }
        ASSERT_EQ(table.size(), expected.size());
    }
    std::size_t seen = 0;
    table.for_each([&](const Number& one) {
        ++seen;
        EXPECT_EQ(expected.at(one.number), one.value);
    });
    EXPECT_EQ(seen, expected.size());
    for (const auto& [n, value] : expected) ASSERT_NE(table.find(n), nullptr) << n;
    table.release();
    EXPECT_EQ(table.find(std::uint64_t{5}), nullptr);
}

__attribute__((noinline)) void capture_deeper(Stack& stack, int deeper) {
    if (deeper == 0) capture(stack, nullptr);
    else capture_deeper(stack, deeper - 1);
    __asm__ volatile("" : : "r"(&stack) : "memory");
}

TEST(ProfileStacks, AreKeptOnce) {
    allow_stacks(nullptr);
    StackTable table;
    Stack a;
    Stack b;
    capture_deeper(a, 3);
    capture_deeper(b, 40);
    ASSERT_GT(a.depth, 4u);
    EXPECT_EQ(b.depth, a.depth + 37);
    const KeptStack* const kept = table.keep(a);
    ASSERT_NE(kept, nullptr);
    EXPECT_NE(table.keep(b), kept);
    EXPECT_EQ(table.keep(a), kept);
    EXPECT_EQ(table.size(), 2u);
    Stack c;
    capture_deeper(c, 1000);
    EXPECT_EQ(c.depth, deepest_stack);
}

// What is known from the last stack is what the unwinder says.
__attribute__((noinline)) void walk_at_random(std::mt19937& random, Trail& trail, int deep, int& walks) {
    char* const moves = static_cast<char*>(__builtin_alloca(random() % 300 + 1));
    __asm__ volatile("" : : "r"(moves) : "memory");
    for (int i = 0; i < 3 && walks < 3000; ++i) {
        if (deep > 0 && random() % 2 == 0) walk_at_random(random, trail, deep - 1, walks);
        Stack known;
        Stack asked;
        const auto captured = [](Stack& stack, Trail* t) __attribute__((noinline)) { capture(stack, t); };
        captured(known, &trail);
        captured(asked, nullptr);
        // The two calls here are at different places, and the innermost frames are capture itself.
        ASSERT_EQ(known.depth, asked.depth);
        for (std::uint32_t f = 3; f < asked.depth; ++f) ASSERT_EQ(known.frame[f], asked.frame[f]) << f;
        ++walks;
    }
    __asm__ volatile("" : : "r"(moves) : "memory");
}

TEST(ProfileStacks, AreKnownAgain) {
    allow_stacks(nullptr);
    Trail trail;
    int walks = 0;
    std::mt19937 random(5);
    while (walks < 3000) walk_at_random(random, trail, 25, walks);
#if defined(__x86_64__)
    EXPECT_GT(trail.length, 4u);
#endif
}

// Two callers at the same place of the stack: what they call is where it was, and they are not.
__attribute__((noinline)) void called_by_both(Stack& stack, Trail* trail) {
    capture(stack, trail);
    __asm__ volatile("" : : "r"(&stack) : "memory");
}
template <int Which>
__attribute__((noinline)) void caller(Stack& stack, Trail* trail) {
    called_by_both(stack, trail);
    __asm__ volatile("" : : "r"(&stack), "i"(Which) : "memory");
}

TEST(ProfileStacks, OfOtherCallersAreNotTakenForTheLast) {
    allow_stacks(nullptr);
    Trail trail;
    Trail* const with_and_without[] = {&trail, nullptr};
    void (*const callers[])(Stack&, Trail*) = {caller<1>, caller<2>};
    Stack seen[2][2];
    for (int which = 0; which < 2; ++which)
        for (int known = 0; known < 2; ++known) callers[which](seen[which][known], with_and_without[known]);
    for (int which = 0; which < 2; ++which) {
        ASSERT_EQ(seen[which][0].depth, seen[which][1].depth);
        // Up to the callers; this function has one place for each call if the loops are unrolled.
        for (std::uint32_t f = 0; f < 3; ++f)
            EXPECT_EQ(seen[which][0].frame[f], seen[which][1].frame[f]) << which << ' ' << f;
    }
    EXPECT_NE(seen[0][0].frame[2], seen[1][0].frame[2]);
}

TEST(ProfileFile, PathsNameTheProcess) {
    Path path;
    const std::string pid = std::to_string(getpid());
    ASSERT_TRUE(make_path("/tmp/a.%p.pb", path));
    EXPECT_EQ(path.text, "/tmp/a." + pid + ".pb");
    ASSERT_TRUE(make_path("%%p%", path));
    EXPECT_STREQ(path.text, "%p%");
    EXPECT_FALSE(make_path(std::string(5000, 'x').c_str(), path));
    EXPECT_FALSE(make_path("", path));
    EXPECT_TRUE(names_process("x%p"));
    EXPECT_FALSE(names_process("x%%p"));
    EXPECT_FALSE(names_process("x%"));
}

}  // namespace
}  // namespace numalloc::profile
