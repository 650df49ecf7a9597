// Sets of nodes on the machine that the test runs on: syntax, errors, contents. Where the pages are is checked in the
// lab.
#include <gtest/gtest.h>
#include <malloc.h>
#include <numalloc/numalloc.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "refused.h"

namespace {

numalloc_node_set usable() {
    numalloc_node_set set{};
    std::vector<int> nodes(static_cast<std::size_t>(numalloc_node_count()));
    numalloc_nodes(nodes.data(), static_cast<int>(nodes.size()));
    for (const int n : nodes) numalloc_node_set_add(&set, n);
    return set;
}

std::string printed(const numalloc_node_set& set) {
    char text[8192];
    const int length = numalloc_node_set_print(&set, text, sizeof text);
    EXPECT_EQ(static_cast<std::size_t>(length), strlen(text));
    return text;
}

std::string parsed(const std::string& text) {
    numalloc_node_set set{};
    errno = 0;
    if (numalloc_node_set_parse(text.c_str(), &set) != 0) return "error " + std::to_string(errno);
    return printed(set);
}

TEST(NodeSets, hold_what_was_added) {
    numalloc_node_set set{};
    for (const int n : {0, 1, 2, 3, 8, 63, 64, 1023, -1, 1024, 70000}) numalloc_node_set_add(&set, n);
    EXPECT_EQ(numalloc_node_set_count(&set), 8);
    EXPECT_EQ(printed(set), "0-3,8,63-64,1023");
    numalloc_node_set_remove(&set, 64);
    numalloc_node_set_remove(&set, 64);
    numalloc_node_set_remove(&set, -3);
    EXPECT_FALSE(numalloc_node_set_has(&set, 64));
    EXPECT_TRUE(numalloc_node_set_has(&set, 1023));
    EXPECT_FALSE(numalloc_node_set_has(&set, 1024));
    EXPECT_EQ(printed(set), "0-3,8,63,1023");
    char text[4] = "xyz";
    EXPECT_EQ(numalloc_node_set_print(&set, text, sizeof text), 13);
    EXPECT_STREQ(text, "0-3");
    EXPECT_EQ(numalloc_node_set_print(&set, nullptr, 0), 13);
    EXPECT_EQ(printed({}), "");
}

TEST(NodeSets, are_parsed_as_libnuma_does) {
    const std::string all = printed(usable());
    EXPECT_EQ(parsed("all"), all);
    EXPECT_EQ(parsed(all), all);
    EXPECT_EQ(parsed("!all"), "");
    EXPECT_EQ(parsed(""), "");
    const std::string first = parsed("+0");
    EXPECT_EQ(first, all.substr(0, all.find_first_of("-,")));
    if (numalloc_node_count() == 1) {
        EXPECT_EQ(parsed("!" + first), "");
    }
    EXPECT_EQ(parsed("!+0"), parsed("!" + first));
    for (const char* wrong :
         {"x", "0-", "-1", "0,", "0 ", "!", "+", "0;1", "3-1", "alle", "1024", "0-4000000", "+1000", "!!0", "1023"})
        EXPECT_EQ(parsed(wrong), "error " + std::to_string(EINVAL)) << wrong;
}

TEST(NodeSets, kinds) {
    numalloc_node_set set{};
    EXPECT_EQ(numalloc_node_set_of_kind(NUMALLOC_NODES_USABLE, &set), numalloc_node_count());
    EXPECT_EQ(printed(set), printed(usable()));
    for (const auto kind : {NUMALLOC_NODES_WITH_CPUS, NUMALLOC_NODES_MEMORY_ONLY, NUMALLOC_NODES_MOST_BANDWIDTH,
                            NUMALLOC_NODES_SLOWER_TIERS}) {
        errno = 0;
        const int count = numalloc_node_set_of_kind(kind, &set);
        EXPECT_TRUE(count == -1 ? errno == ENODATA : count <= numalloc_node_count()) << kind;
    }
    errno = 0;
    EXPECT_EQ(numalloc_node_set_of_kind(static_cast<enum numalloc_node_kind>(99), &set), -1);
    EXPECT_EQ(errno, EINVAL);
}

TEST(NodeSets, blocks_are_usable_resized_and_freed) {
    const numalloc_node_set set = usable();
    const std::vector<unsigned char> weights(1024, 3);
    for (std::size_t n :
         {std::size_t{0}, std::size_t{100}, std::size_t{524288}, std::size_t{524289}, std::size_t{9000000}})
        for (int kind = 0; kind < 4; ++kind) {
            auto* p = static_cast<char*>(kind == 0   ? numalloc_malloc_on_set(n, NUMALLOC_INTERLEAVE, &set)
                                         : kind == 1 ? numalloc_malloc_on_set(n, NUMALLOC_BIND, &set)
                                         : kind == 2 ? numalloc_malloc_on_set(n, NUMALLOC_PREFER, &set)
                                                     : numalloc_malloc_weighted(n, &set, weights.data()));
            ASSERT_NE(p, nullptr);
            memset(p, 4, n);
            p = static_cast<char*>(realloc(p, n * 3 + 1));
            EXPECT_TRUE(n == 0 || (p[0] == 4 && p[n - 1] == 4));
            memset(p, 5, n * 3 + 1);
            p = static_cast<char*>(realloc(p, n / 2 + 1));
            EXPECT_EQ(p[n / 2], 5);
            std::thread([p] { free(p); }).join();
        }
}

TEST(NodeSets, errors) {
    const numalloc_node_set empty{};
    numalloc_node_set beyond{};
    numalloc_node_set_add(&beyond, 1023);
    const unsigned char ones[1] = {1};
    const std::vector<unsigned char> zeros(1024, 0);
    const auto refused = [](bool result, int error) {
        EXPECT_FALSE(result);
        EXPECT_EQ(errno, error);
        errno = 0;
    };
    errno = 0;
    for (const numalloc_node_set& bad : {empty, beyond}) {
        refused(numalloc_malloc_on_set(10, NUMALLOC_BIND, &bad), EINVAL);
        refused(numalloc_malloc_weighted(10, &bad, ones), EINVAL);
        refused(numalloc_heap_create_on_set(NUMALLOC_BIND, &bad), EINVAL);
        refused(numalloc_set_thread_policy(NUMALLOC_BIND, &bad) == 0, EINVAL);
    }
    const numalloc_node_set set = usable();
    refused(numalloc_malloc_on_set(10, NUMALLOC_LOCAL, &set), EINVAL);
    refused(numalloc_heap_create_on_set(NUMALLOC_LOCAL, &set), EINVAL);
    refused(numalloc_malloc_weighted(10, &set, zeros.data()), EINVAL);
    refused(numalloc_set_thread_policy(NUMALLOC_LOCAL, &set) == 0, EINVAL);
    refused(numalloc_set_thread_policy(NUMALLOC_PREFER, nullptr) == 0, EINVAL);
    volatile std::size_t much = SIZE_MAX / 2;
    refused(numalloc_malloc_on_set(much, NUMALLOC_INTERLEAVE, &set), ENOMEM);
}

TEST(NodeSets, heaps) {
    const numalloc_node_set set = usable();
    for (const auto policy : {NUMALLOC_INTERLEAVE, NUMALLOC_BIND, NUMALLOC_PREFER}) {
        numalloc_heap* heap = numalloc_heap_create_on_set(policy, &set);
        ASSERT_NE(heap, nullptr);
        EXPECT_TRUE(numalloc_node_set_has(&set, numalloc_heap_node(heap)));
        std::vector<char*> objects;
        for (int i = 0; i < 2000; ++i) {
            const std::size_t n = static_cast<std::size_t>(i) * 41 % 6000 + (i % 100 == 0 ? 700000 : 1);
            objects.push_back(static_cast<char*>(numalloc_heap_calloc(heap, 1, n)));
            ASSERT_NE(objects.back(), nullptr);
            EXPECT_EQ(objects.back()[n - 1], 0);
            memset(objects.back(), 1, n);
            if (i % 3 == 0) free(objects.back());
            else if (i % 50 == 1) objects.back() = static_cast<char*>(realloc(objects.back(), n * 2));
        }
        numalloc_heap_reset(heap);
        EXPECT_EQ(numalloc_heap_held(heap), 0u);
        EXPECT_NE(numalloc_heap_malloc(heap, 100), nullptr);
        numalloc_heap_destroy(heap);
    }
}

TEST(NodeSets, of_a_thread) {
    const numalloc_node_set set = usable();
    enum numalloc_policy policy = NUMALLOC_BIND;
    numalloc_node_set got{};
    EXPECT_EQ(numalloc_thread_policy(&policy, &got), 0);
    for (const auto wanted : {NUMALLOC_INTERLEAVE, NUMALLOC_BIND, NUMALLOC_PREFER}) {
        ASSERT_EQ(numalloc_set_thread_policy(wanted, &set), 0);
        ASSERT_EQ(numalloc_thread_policy(&policy, &got), 1);
        EXPECT_EQ(policy, wanted);
        EXPECT_EQ(printed(got), printed(set));
        free(malloc(100000));
        free(malloc(3000000));
    }
    ASSERT_EQ(numalloc_set_thread_policy(NUMALLOC_INTERLEAVE, nullptr), 0);
    ASSERT_EQ(numalloc_set_thread_policy(NUMALLOC_LOCAL, nullptr), 0);
    EXPECT_EQ(numalloc_thread_policy(&policy, &got), 1);
    EXPECT_EQ(policy, NUMALLOC_LOCAL);
    EXPECT_EQ(numalloc_set_thread_placement(nullptr), 0);
    EXPECT_EQ(numalloc_thread_policy(&policy, &got), 0);
}

TEST(NodeSets, rehoming_with_blocks) {
    void* small = malloc(1000);
    auto* big = static_cast<char*>(malloc(5000000));
    memset(big, 7, 5000000);
    const long long bytes = numalloc_rehome_with_blocks(numalloc_current_node());
    if (numalloc_node_count() == 1) {
        EXPECT_GE(bytes, 5000000);
    }
    EXPECT_EQ(big[4999999], 7);
    errno = 0;
    EXPECT_EQ(numalloc_rehome_with_blocks(1023), -1);
    EXPECT_EQ(errno, EINVAL);
    free(big);
    free(small);
}

}  // namespace
