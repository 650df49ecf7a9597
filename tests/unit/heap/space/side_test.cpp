// The side heap: malloc's promises, unmapping of chunks, many threads.
#include "heap/space/side.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "os/fork_gate.h"
#include "os/libc_call.h"
#include "os/memory.h"

namespace numalloc {
namespace {

// Zeroed: what the heap says is zero must be.
char* take(Bytes n, Bytes alignment = 1) {
    const side::Memory memory = side::allocate(n, alignment);
    if (memory.p != nullptr && !memory.zeroed) std::memset(memory.p, 0, side::bytes_of(memory.p));
    return static_cast<char*>(memory.p);
}

bool all_are(char value, const char* p, Bytes n) {
    return n == 0 || (p[0] == value && std::memcmp(p, p + 1, n - 1) == 0);
}

// Each test starts without an open chunk.
class SideHeap : public testing::Test {
protected:
    void SetUp() override { side::trim(); }
    void TearDown() override { side::trim(); }
};

TEST_F(SideHeap, ObjectsAreZeroAlignedAndApart) {
    std::vector<std::pair<char*, Bytes>> objects;
    for (Bytes n = 0; n < 3 * MiB; n += n / 3 + 1)
        for (Bytes alignment = 1; alignment <= 4 * MiB; alignment *= 64) {
            char* const p = take(n, alignment);
            ASSERT_NE(p, nullptr);
            EXPECT_EQ(address_of(p) % alignment, 0U);
            EXPECT_EQ(address_of(p) % 16, 0U);
            EXPECT_TRUE(side::contains(p));
            EXPECT_EQ(side::why_invalid(p), nullptr);
            EXPECT_GE(side::bytes_of(p), n);
            const Bytes bytes = side::bytes_of(p);
            ASSERT_TRUE(all_are(0, p, bytes));
            std::memset(p, static_cast<int>(objects.size() % 255 + 1), bytes);
            objects.emplace_back(p, bytes);
        }
    for (std::size_t k = 0; k < objects.size(); ++k) {
        const auto [p, bytes] = objects[k];
        ASSERT_TRUE(all_are(static_cast<char>(k % 255 + 1), p, bytes));
        side::free(p, "free");
    }
}

TEST_F(SideHeap, AChunkGoesWithItsLastObject) {
    char* const a = take(100);
    char* const b = take(100);
    side::free(a, "free");
    EXPECT_STREQ(side::why_invalid(a), "was freed already");
    side::trim();
    EXPECT_EQ(side::why_invalid(b), nullptr);
    char* const c = take(100);
    EXPECT_EQ(c, a) << "another chunk, or a slot never used before, although this one is free";
    side::free(b, "free");
    side::free(c, "free");
    side::trim();
    EXPECT_FALSE(side::contains(b));
    char* const large = take(MiB);
    side::free(large, "free");
    EXPECT_FALSE(side::contains(large));
}

// A thread that allocates for seconds beside a fork: whatever it frees is used again.
TEST_F(SideHeap, FreedSlotsAreUsedAgain) {
    for (const Bytes n : {16, 1000, 5000, 100'000}) {
        std::vector<char*> live;
        for (int i = 0; i < 9; ++i) live.push_back(take(n));
        const auto [lowest, highest] = std::minmax_element(live.begin(), live.end());
        char* const low = *lowest;
        char* const high = *highest;
        std::mt19937 random(1);
        for (int i = 0; i < 20'000; ++i) {
            char*& one = live[random() % live.size()];
            side::free(one, "free");
            one = take(n);
            ASSERT_TRUE(one >= low && one <= high);
        }
        for (char* const p : live) side::free(p, "free");
    }
}

TEST_F(SideHeap, AHalfEmptyChunkOpensAgain) {
    constexpr Bytes n = 60'000;
    constexpr std::size_t in_one = 15;  // 64 KiB a slot
    std::vector<char*> objects;
    for (std::size_t i = 0; i < 3 * in_one; ++i) objects.push_back(take(n));
    const std::vector<char*> first(objects.begin(), objects.begin() + in_one);
    for (std::size_t i = 0; i < in_one; i += 2) side::free(objects[i], "free");  // closed, and half empty
    for (std::size_t i = 0; i < in_one; i += 2) {
        objects[i] = take(n);
        EXPECT_NE(std::find(first.begin(), first.end(), objects[i]), first.end());
    }
    for (char* const p : objects) side::free(p, "free");
    side::trim();
    for (char* const p : objects) EXPECT_FALSE(side::contains(p));
}

TEST_F(SideHeap, DuringAForkAFreedLargeObjectsChunkServesTheNext) {
    os::fork_gate.close();
    char* const first = take(600 * KiB);
    first[0] = 1;
    side::free(first, "free");
    EXPECT_STREQ(side::why_invalid(first), "was freed already");
    const side::Memory next = side::allocate(610 * KiB, 1);
    EXPECT_EQ(next.p, first);
    EXPECT_FALSE(next.zeroed);
    EXPECT_EQ(side::bytes_of(next.p), 610 * KiB);
    EXPECT_EQ(side::why_invalid(next.p), nullptr);
    side::free(next.p, "free");
    EXPECT_NE(take(3 * MiB), first) << "longer";
    char* const shorter = take(300 * KiB);
    EXPECT_EQ(shorter, first);
    side::free(shorter, "free");
    char* const beyond = take(5 * MiB);
    side::free(beyond, "free");
    EXPECT_FALSE(side::contains(beyond)) << "too long for a spare";
    os::fork_gate.open();
    side::trim();
    EXPECT_FALSE(side::contains(first));
    char* const after = take(600 * KiB);
    side::free(after, "free");
    EXPECT_FALSE(side::contains(after)) << "no fork is in progress";
}

// munmap() may be a library's, which has just allocated and freed what is to be unmapped.
TEST_F(SideHeap, InsideALibcCallNothingIsUnmapped) {
    std::vector<char*> left;
    {
        const os::LibcCall call;
        for (const Bytes n : {300 * KiB, 2 * MiB, 9 * MiB}) {
            left.push_back(take(n));
            side::free(left.back(), "free");
            EXPECT_TRUE(side::contains(left.back()));
            EXPECT_EQ(take(n), left.back()) << "another chunk, although this one suits";
            side::free(left.back(), "free");
        }
    }
    {
        const os::LibcCall call;
        std::set<Address> megabytes;
        for (int round = 0; round < 30; ++round) {
            std::vector<char*> objects;
            for (int i = 0; i < 4000; ++i) objects.push_back(take(1000));
            for (char* const p : objects) {
                megabytes.insert(address_of(p) / MiB);
                side::free(p, "free");
            }
        }
        EXPECT_LT(megabytes.size(), 20U) << "each round has chunks of its own";
    }
    side::trim();
    left.assign({take(300 * KiB), take(2 * MiB), take(9 * MiB)});
    {
        const os::LibcCall call;
        for (char* const p : left) side::free(p, "free");
    }
    EXPECT_EQ(take(2 * MiB), left[1]);
    side::free(left[1], "free");
    EXPECT_FALSE(side::contains(left[1])) << "no call is in progress";
    side::trim();
    for (char* const p : left) EXPECT_FALSE(side::contains(p));
}

TEST_F(SideHeap, OnlyAFewChunksAreSpare) {
    os::fork_gate.close();
    std::vector<char*> objects;
    for (int i = 0; i < 20; ++i) objects.push_back(take(400 * KiB));
    for (char* const p : objects) side::free(p, "free");
    int kept = 0;
    for (char* const p : objects) kept += side::contains(p);
    EXPECT_EQ(kept, 4);
    os::fork_gate.open();
    side::trim();
    for (char* const p : objects) EXPECT_FALSE(side::contains(p));
}

TEST_F(SideHeap, AnEmptyChunkServesOnWhileItIsOpen) {
    side::free(take(100), "free");
    char* const next = take(100);
    EXPECT_TRUE(side::contains(next));
    side::free(next, "free");
    side::trim();
    EXPECT_FALSE(side::contains(next));
}

TEST_F(SideHeap, WhatIsNoObjectIsSaid) {
    char* const p = take(1000);
    EXPECT_NE(side::why_invalid(p + 16), nullptr);
    EXPECT_NE(side::why_invalid(p + 1), nullptr);
    EXPECT_NE(side::why_invalid(p - 16), nullptr);
    int other = 0;
    EXPECT_FALSE(side::contains(&other));
    EXPECT_FALSE(side::contains(nullptr));
    side::free(p, "free");
}
TEST_F(SideHeap, ASecondFreeEndsTheProgram) {
    char* const p = take(1000);
    side::free(p, "free");
    EXPECT_DEATH(side::free(p, "free"), "invalid pointer in free.*was freed already");
}

TEST_F(SideHeap, WhatCannotBeIsRefused) {
    EXPECT_EQ(take(~Bytes{0}), nullptr);
    EXPECT_EQ(take(Bytes{1} << 60), nullptr);
    EXPECT_EQ(take(1, Bytes{1} << 60), nullptr);
}

// With all table entries in use allocation fails, and it works again after the frees.
TEST_F(SideHeap, TooManyChunksAreRefused) {
    std::vector<char*> objects;
    for (int i = 0; i < 10000; ++i) {
        char* const p = take(300 * 1024);
        if (p == nullptr) break;
        objects.push_back(p);
    }
    EXPECT_LT(objects.size(), 10000U);
    EXPECT_GE(objects.size(), 8000U);
    EXPECT_EQ(take(1), nullptr);
    for (char* const p : objects) side::free(p, "free");
    char* const p = take(1);
    EXPECT_NE(p, nullptr);
    side::free(p, "free");
}

// An entry before its own in the table is that of a long chunk, and of a shorter one in front of the object's, in turn.
TEST_F(SideHeap, AnObjectIsFoundWhileOtherChunksChange) {
    constexpr Bytes longer = 2 * MiB, shorter = 300 * KiB, room = 320 * KiB;
    std::atomic<bool> begins{false}, ends{false};
    std::thread other([&] {
        side::free(take(shorter), "free");  // the thread itself needs no more memory
        begins.wait(false);
        while (!ends) {
            side::free(take(longer), "free");
            side::free(take(shorter), "free");
        }
    });
    char* const entry = take(shorter);
    char* const object = take(100);
    side::free(entry, "free");
    // Fills all other places that the shorter chunk could have, where the kernel maps downwards.
    std::vector<void*> full;
    for (int i = 0; i < 2000; ++i) {
        auto* const p = static_cast<char*>(os::map(room));
        if (p == nullptr) break;
        full.push_back(p);
        if (p < object && object < p + longer) break;
    }
    if (!full.empty()) {
        os::unmap(full.back(), room);
        full.pop_back();
    }
    begins = true;
    begins.notify_all();
    unsigned faults = 0;
    for (int i = 0; i < 1'000'000; ++i) faults += side::why_invalid(object) != nullptr ? 1 : 0;
    ends = true;
    other.join();
    EXPECT_EQ(faults, 0u);
    side::free(object, "free");
    for (void* const p : full) os::unmap(p, room);
}

// Threads free each other's objects while chunks are closed at random.
TEST_F(SideHeap, ManyThreads) {
    constexpr unsigned slots = 64;
    static std::atomic<char*> shared[slots];
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t)
        threads.emplace_back([t] {
            std::mt19937 random(t);
            for (int i = 0; i < 4000; ++i) {
                if (random() % 50 == 0) side::trim();
                const Bytes n = random() % 100 == 0 ? 300 * 1024 : random() % 20000 + 1;
                char* const p = take(n, Bytes{1} << random() % 13);
                ASSERT_NE(p, nullptr);
                const Bytes bytes = side::bytes_of(p);
                ASSERT_EQ(p[0], 0);
                ASSERT_EQ(p[bytes - 1], 0);
                p[0] = p[bytes - 1] = static_cast<char>(bytes / 16 | 1);
                char* const other = shared[random() % slots].exchange(p, std::memory_order_acq_rel);
                if (other == nullptr) continue;
                const Bytes others = side::bytes_of(other);
                ASSERT_EQ(other[0], static_cast<char>(others / 16 | 1));
                ASSERT_EQ(other[others - 1], other[0]);
                side::free(other, "free");
            }
        });
    for (std::thread& thread : threads) thread.join();
    std::vector<char*> left;
    for (auto& slot : shared)
        if (char* const p = slot.exchange(nullptr, std::memory_order_acquire)) left.push_back(p);
    for (char* const p : left) side::free(p, "free");
    side::trim();
    for (char* const p : left) EXPECT_FALSE(side::contains(p));
}

}  // namespace
}  // namespace numalloc
