// Every form of operator new and delete, the new_handler and std::bad_alloc. The operators are
// called by name and their results kept: the compiler may leave out a pair it can see whole.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "api/sizes.h"
#include "check.h"

namespace {

using api::opaque;
void keep(void* p) { __asm__ volatile("" : : "r"(p) : "memory"); }

constexpr std::size_t huge = SIZE_MAX / 2 + 1;

TEST(New, ScalarAndArrayWithEveryDelete) {
    for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{24}, std::size_t{1000}, std::size_t{50000},
                             std::size_t{3000000}}) {
        for (int round = 0; round < 3; ++round) {
            void* p = ::operator new(size);
            ASSERT_NE(p, nullptr);
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % __STDCPP_DEFAULT_NEW_ALIGNMENT__, 0u);
            std::memset(p, 1, size);
            void* q = ::operator new[](size);
            ASSERT_NE(q, nullptr);
            ASSERT_NE(p, q);
            std::memset(q, 2, size);
            void* r = ::operator new(size, std::nothrow);
            ASSERT_NE(r, nullptr);
            void* s = ::operator new[](size, std::nothrow);
            ASSERT_NE(s, nullptr);
            errno = 5;
            if (round == 0) {
                ::operator delete(p);
                ::operator delete[](q);
            } else if (round == 1) {
                ::operator delete(p, size);
                ::operator delete[](q, size);
            } else {
                ::operator delete(p, std::nothrow);
                ::operator delete[](q, std::nothrow);
            }
            ::operator delete(r);
            ::operator delete[](s);
            EXPECT_EQ(errno, 5);
        }
    }
}

TEST(New, NoAlignmentButAPowerOfTwo) {
    for (const std::size_t alignment : {std::size_t{3}, std::size_t{24}, std::size_t{48}, std::size_t{1000}}) {
        const auto a = std::align_val_t{alignment};
        EXPECT_THROW(keep(::operator new(1000, a)), std::bad_alloc) << alignment;
        EXPECT_THROW(keep(::operator new[](1000, a)), std::bad_alloc) << alignment;
        EXPECT_EQ(::operator new(1000, a, std::nothrow), nullptr) << alignment;
        EXPECT_EQ(::operator new[](1000, a, std::nothrow), nullptr) << alignment;
    }
    // libstdc++ refuses this one, too; a block that is long enough does no harm.
    if (void* const p = ::operator new(1000, std::align_val_t{opaque(std::size_t{0})}, std::nothrow); p != nullptr) {
        EXPECT_GE(malloc_usable_size(p), 1000u);
    }
}

TEST(New, AlignedForms) {
    for (std::size_t alignment = 1; alignment <= (1 << 21); alignment *= 2) {
        const auto a = static_cast<std::align_val_t>(alignment);
        for (std::size_t size : {std::size_t{1}, std::size_t{100}, alignment + 1, alignment * 2}) {
            void* p[6] = {::operator new(size, a),
                          ::operator new[](size, a),
                          ::operator new(size, a, std::nothrow),
                          ::operator new[](size, a, std::nothrow),
                          ::operator new(size, a),
                          ::operator new[](size, a)};
            for (void* q : p) {
                ASSERT_NE(q, nullptr);
                ASSERT_EQ(reinterpret_cast<std::uintptr_t>(q) % alignment, 0u);
                std::memset(q, 1, size < 100000 ? size : 64);
            }
            ::operator delete(p[0], a);
            ::operator delete[](p[1], a);
            ::operator delete(p[2], a, std::nothrow);
            ::operator delete[](p[3], a, std::nothrow);
            ::operator delete(p[4], size, a);
            ::operator delete[](p[5], size, a);
        }
    }
}

TEST(Delete, NullIsNothing) {
    void* volatile null = nullptr;
    ::operator delete(null);
    ::operator delete[](null);
    ::operator delete(null, std::size_t{8});
    ::operator delete[](null, std::size_t{8});
    ::operator delete(null, std::align_val_t{64});
    ::operator delete[](null, std::align_val_t{64});
    ::operator delete(null, std::size_t{8}, std::align_val_t{64});
    ::operator delete(null, std::nothrow);
}

TEST(New, TooLargeThrowsBadAlloc) {
    for (std::size_t size : api::impossible_sizes()) {
        EXPECT_THROW(keep(::operator new(size)), std::bad_alloc);
        EXPECT_THROW(keep(::operator new[](size)), std::bad_alloc);
        EXPECT_EQ(::operator new(size, std::nothrow), nullptr);
        EXPECT_EQ(::operator new[](size, std::nothrow), nullptr);
        // libstdc++ 12's own operators round such sizes up to nothing.
        if (testing_support::any_allocator() && size > SIZE_MAX - 256) continue;
        EXPECT_THROW(keep(::operator new(size, std::align_val_t{256})), std::bad_alloc);
        EXPECT_THROW(keep(::operator new[](size, std::align_val_t{256})), std::bad_alloc);
        EXPECT_EQ(::operator new(size, std::align_val_t{256}, std::nothrow), nullptr);
        EXPECT_EQ(::operator new[](size, std::align_val_t{256}, std::nothrow), nullptr);
    }
}

// As malloc says it to libstdc++'s operators.
TEST(New, WithoutMemoryErrnoIsEnomem) {
    const auto error_of = [](auto call) {
        errno = 0;
        try {
            keep(call());
        } catch (const std::bad_alloc&) {}
        return std::exchange(errno, 0);
    };
    constexpr std::align_val_t a{64};
    EXPECT_EQ(error_of([] { return ::operator new(opaque(huge)); }), ENOMEM);
    EXPECT_EQ(error_of([] { return ::operator new[](opaque(huge)); }), ENOMEM);
    EXPECT_EQ(error_of([] { return ::operator new(opaque(huge), std::nothrow); }), ENOMEM);
    EXPECT_EQ(error_of([] { return ::operator new[](opaque(huge), std::nothrow); }), ENOMEM);
    EXPECT_EQ(error_of([] { return ::operator new(opaque(huge), a); }), ENOMEM);
    EXPECT_EQ(error_of([] { return ::operator new(opaque(huge), a, std::nothrow); }), ENOMEM);
}

int handler_calls;

void handler_that_gives_up_at_the_fifth() {
    if (++handler_calls == 5) std::set_new_handler(nullptr);
}

struct OwnError : std::bad_alloc {};

void handler_that_throws() {
    ++handler_calls;
    throw OwnError();
}

template <class Call>
int calls_before_bad_alloc(Call call) {
    handler_calls = 0;
    std::set_new_handler(handler_that_gives_up_at_the_fifth);
    EXPECT_THROW(call(), std::bad_alloc);
    std::set_new_handler(nullptr);
    return handler_calls;
}

TEST(NewHandler, IsCalledUntilItGivesUp) {
    EXPECT_EQ(calls_before_bad_alloc([] { keep(::operator new(opaque(huge))); }), 5);
    EXPECT_EQ(calls_before_bad_alloc([] { keep(::operator new[](opaque(huge))); }), 5);
    EXPECT_EQ(calls_before_bad_alloc([] { keep(::operator new(opaque(huge), std::align_val_t{64})); }), 5);
    EXPECT_EQ(calls_before_bad_alloc([] { keep(::operator new[](opaque(huge), std::align_val_t{64})); }), 5);
}

TEST(NewHandler, IsCalledByNothrowFormsToo) {
    for (int form = 0; form < 4; ++form) {
        handler_calls = 0;
        std::set_new_handler(handler_that_gives_up_at_the_fifth);
        void* p = form == 0   ? ::operator new(opaque(huge), std::nothrow)
                  : form == 1 ? ::operator new[](opaque(huge), std::nothrow)
                  : form == 2 ? ::operator new(opaque(huge), std::align_val_t{64}, std::nothrow)
                              : ::operator new[](opaque(huge), std::align_val_t{64}, std::nothrow);
        EXPECT_EQ(p, nullptr);
        EXPECT_EQ(handler_calls, 5) << form;
        std::set_new_handler(nullptr);
    }
}

TEST(NewHandler, WhatItThrowsPassesThroughNewAndBecomesNullInNothrow) {
    handler_calls = 0;
    std::set_new_handler(handler_that_throws);
    EXPECT_THROW(keep(::operator new(opaque(huge))), OwnError);
    EXPECT_EQ(::operator new(opaque(huge), std::nothrow), nullptr);
    EXPECT_EQ(::operator new[](opaque(huge), std::align_val_t{64}, std::nothrow), nullptr);
    EXPECT_EQ(handler_calls, 3);
    std::set_new_handler(nullptr);
}

TEST(NewHandler, MallocNeverCallsIt) {
    handler_calls = 0;
    std::set_new_handler(handler_that_throws);
    EXPECT_EQ(malloc(opaque(huge)), nullptr);
    EXPECT_EQ(handler_calls, 0);
    std::set_new_handler(nullptr);
}

TEST(New, OperatorsTakeTheirMemoryFromMalloc) {
    if (testing_support::any_allocator()) GTEST_SKIP();
    void* p = ::operator new(1000);
    EXPECT_GE(malloc_usable_size(p), 1000u);
    ::operator delete(p);
}

struct alignas(128) Overaligned {
    char bytes[200];
};

TEST(New, ContainersAndExceptionsWork) {
    std::map<std::string, std::vector<int>> map;
    for (int i = 0; i < 20000; ++i) map["key " + std::to_string(i)].assign(static_cast<std::size_t>(i % 50), i);
    for (int i = 0; i < 20000; i += 2) map.erase("key " + std::to_string(i));
    for (int i = 1; i < 20000; i += 2) {
        const auto found = map.find("key " + std::to_string(i));
        ASSERT_NE(found, map.end());
        for (int value : found->second) ASSERT_EQ(value, i);
    }
    auto many = std::make_unique<Overaligned[]>(100);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(many.get()) % 128, 0u);
    EXPECT_THROW((void)std::vector<int>().at(3), std::out_of_range);
    EXPECT_THROW(std::string().reserve(opaque(std::string().max_size())), std::bad_alloc);
}

}  // namespace
