// Seeds depend on the kernel's random bytes only, not on their address, which would reveal the stack's.
#include "os/seeds.h"

#include <gtest/gtest.h>
#include <sys/auxv.h>

#include <cstring>
#include <set>

namespace {

unsigned char places[64];
const void* bytes = places;

}  // namespace

extern "C" unsigned long __real_getauxval(unsigned long what);
extern "C" unsigned long __wrap_getauxval(unsigned long what) {
    return what == AT_RANDOM ? reinterpret_cast<unsigned long>(bytes) : __real_getauxval(what);
}

namespace numalloc::os {
namespace {

void put(unsigned at, unsigned char first) {
    for (unsigned i = 0; i < 16; ++i) places[at + i] = static_cast<unsigned char>(first + i);
    bytes = places + at;
}

// SipHash-2-4's published vector for key 0, 1, ... 15 and message 0, 1, ... 7.
TEST(Seeds, AreTheReferencesHash) {
    put(0, 0);
    EXPECT_EQ(secret_seed(SeedFor{0x0706050403020100U}), 0x93F5F5799A932462U);
}

TEST(Seeds, DoNotDependOnThePlace) {
    put(3, 100);
    const std::uint64_t secret = secret_seed(SeedFor::freed_key);
    const std::uint64_t layout = layout_seed(SeedFor::layout);
    put(40, 100);
    EXPECT_EQ(secret_seed(SeedFor::freed_key), secret);
    EXPECT_EQ(layout_seed(SeedFor::layout), layout);
    put(40, 101);
    EXPECT_NE(secret_seed(SeedFor::freed_key), secret);
}

TEST(Seeds, EachIsAnother) {
    put(0, 7);
    std::set<std::uint64_t> all;
    for (std::uint64_t what = 1; what <= static_cast<std::uint64_t>(SeedFor::guarded); ++what)
        all.insert(secret_seed(SeedFor{what}));
    EXPECT_EQ(all.size(), static_cast<std::uint64_t>(SeedFor::guarded));
}

}  // namespace
}  // namespace numalloc::os
