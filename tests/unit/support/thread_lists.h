// What a thread's lists hold, and whether they are as thread_heap.h says.
#pragma once

#include <gtest/gtest.h>

#include "heap/thread/thread_heap.h"

namespace numalloc::testing {

inline std::uint32_t length(const Object* list) {
    std::uint32_t n = 0;
    for (; list != nullptr; list = list->next) ++n;
    return n;
}
// The equations of thread_heap.h.
inline void check_lists(const ThreadHeap* h) {
    EXPECT_EQ(h->room[0], 0);
    Bytes held = 0;
    for (unsigned c = 1; c < class_count; ++c) {
        const ThreadHeap::Lists& s = h->lists[c];
        const std::uint32_t current = h->head[c] == &end_of_list ? 0 : length(h->head[c]);
        EXPECT_EQ(static_cast<std::int32_t>(current), s.limit - h->room[c]) << "class " << c;
        if (current == 0) {
            EXPECT_EQ(h->room[c], 0) << "class " << c;
        }
        EXPECT_EQ(length(s.sealed), s.sealed == nullptr ? 0u : s.sealed_count) << "class " << c;
        EXPECT_LE(s.capacity, shape_of(ClassId{c}).batch);
        EXPECT_LE(current + (s.sealed == nullptr ? 0 : s.sealed_count), s.held) << "class " << c;
        EXPECT_TRUE(s.held == 0 || h->filled.test(c)) << "class " << c;
        held += Bytes{s.held} * size_of_class(c);
    }
    EXPECT_EQ(held, h->held);
}

}  // namespace numalloc::testing
