// numalloc.hpp: the standard's containers with memory that has a place, and where it lies after they are
// moved, swapped and copied. On a machine of one node the places are told apart by heaps.
#include <gtest/gtest.h>
#include <malloc.h>
#include <array>
#include <cstring>
#include <numalloc/numalloc.hpp>

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace {

using namespace numalloc;

int a_node() {
    int node;
    numalloc_nodes(&node, 1);
    return node;
}

template <class A>
constexpr bool propagates_as_promised = !std::allocator_traits<A>::propagate_on_container_copy_assignment::value &&
                                        std::allocator_traits<A>::propagate_on_container_move_assignment::value &&
                                        std::allocator_traits<A>::propagate_on_container_swap::value;
static_assert(propagates_as_promised<node_allocator<int>> && propagates_as_promised<owner_allocator<int>> &&
              propagates_as_promised<interleaved_allocator<int>> && propagates_as_promised<heap_allocator<int>>);
static_assert(std::allocator_traits<interleaved_allocator<int>>::is_always_equal::value);
static_assert(!std::allocator_traits<node_allocator<int>>::is_always_equal::value);
static_assert(std::is_same_v<std::allocator_traits<node_allocator<int>>::rebind_alloc<char>, node_allocator<char>>);
static_assert(!std::is_default_constructible_v<node_allocator<int>> &&
              !std::is_default_constructible_v<heap_allocator<int>>);
static_assert(std::is_default_constructible_v<interleaved_allocator<int>> &&
              std::is_default_constructible_v<owner_allocator<int>>);
static_assert(std::is_nothrow_move_assignable_v<std::vector<int, node_allocator<int>>>);
static_assert(!std::is_copy_constructible_v<heap> && std::is_nothrow_move_constructible_v<heap>);

template <class Allocator>
void fill_containers(const Allocator& a) {
    using Traits = std::allocator_traits<Allocator>;
    using Letters = std::basic_string<char, std::char_traits<char>, typename Traits::template rebind_alloc<char>>;
    std::vector<int, typename Traits::template rebind_alloc<int>> vector(a);
    std::list<int, typename Traits::template rebind_alloc<int>> list(a);
    std::deque<int, typename Traits::template rebind_alloc<int>> deque(a);
    std::map<int, int, std::less<>, typename Traits::template rebind_alloc<std::pair<const int, int>>> map(a);
    std::unordered_map<int, Letters, std::hash<int>, std::equal_to<>,
                       typename Traits::template rebind_alloc<std::pair<const int, Letters>>>
        table(16, std::hash<int>(), std::equal_to<>(), a);
    for (int i = 0; i < 2000; ++i) {
        vector.push_back(i);
        list.push_front(i);
        deque.push_back(i);
        map[i] = -i;
        table.emplace(i, Letters(static_cast<std::size_t>(i % 100), 'x', a));
    }
    EXPECT_EQ(vector[1999], 1999);
    EXPECT_EQ(list.front(), 1999);
    EXPECT_EQ(deque[1234], 1234);
    EXPECT_EQ(map.at(77), -77);
    EXPECT_EQ(table.at(99).size(), 99u);
    auto shared = std::allocate_shared<int>(a, 5);
    EXPECT_EQ(*shared, 5);
}

TEST(Containers, take_every_allocator) {
    heap arena(a_node());
    fill_containers(node_allocator<int>(a_node()));
    fill_containers(owner_allocator<int>(3));
    fill_containers(owner_allocator<int>());
    fill_containers(interleaved_allocator<int>());
    fill_containers(heap_allocator<int>(arena));
    EXPECT_EQ(arena.used(), 0u);
}

TEST(Containers, memory_comes_from_the_place) {
    heap arena(a_node());
    std::vector<int, heap_allocator<int>> v(1000, 7, arena);
    EXPECT_GE(arena.used(), 4000u);
    EXPECT_EQ(arena.node(), a_node());
    EXPECT_EQ(v.get_allocator().node(), a_node());
    EXPECT_EQ(node_allocator<int>(a_node()).node(), a_node());
    EXPECT_EQ(owner_allocator<int>(5).owner(), 5);
}

using Vector = std::vector<int, heap_allocator<int>>;

TEST(Containers, moving_takes_the_memory_along) {
    heap one(a_node());
    heap two(a_node());
    Vector a(1000, 1, one);
    Vector b(10, 2, two);
    const int* const data = a.data();
    b = std::move(a);
    EXPECT_EQ(b.data(), data);
    EXPECT_EQ(b.get_allocator(), heap_allocator<int>(one));
    EXPECT_EQ(two.used(), 0u);
    Vector c(std::move(b));
    EXPECT_EQ(c.data(), data);
}

TEST(Containers, swapping_swaps_the_places) {
    heap one(a_node());
    heap two(a_node());
    Vector a(1000, 1, one);
    Vector b(2000, 2, two);
    const int* const data = a.data();
    swap(a, b);
    EXPECT_EQ(b.data(), data);
    EXPECT_EQ(a.get_allocator(), heap_allocator<int>(two));
    EXPECT_EQ(b.get_allocator(), heap_allocator<int>(one));
}

TEST(Containers, an_assigned_copy_stays_where_it_is_and_a_constructed_one_lies_beside_its_original) {
    heap one(a_node());
    heap two(a_node());
    Vector a(1000, 1, one);
    Vector b(two);
    b = a;
    EXPECT_EQ(b, a);
    EXPECT_EQ(b.get_allocator(), heap_allocator<int>(two));
    EXPECT_GE(two.used(), 4000u);
    const std::size_t before = one.used();
    Vector c(a);
    EXPECT_EQ(c.get_allocator(), heap_allocator<int>(one));
    EXPECT_GE(one.used(), before + 4000);
    Vector d(a, two);
    EXPECT_EQ(d.get_allocator(), heap_allocator<int>(two));
}

TEST(Containers, allocators_are_equal_where_places_are) {
    EXPECT_TRUE(node_allocator<int>(0) == node_allocator<char>(0));
    EXPECT_TRUE(node_allocator<int>(0) != node_allocator<int>(1));
    EXPECT_TRUE(owner_allocator<int>(2) == owner_allocator<long>(2));
    EXPECT_TRUE(owner_allocator<int>(2) != owner_allocator<int>(3));
    EXPECT_TRUE(interleaved_allocator<int>() == interleaved_allocator<char>());
    EXPECT_EQ(node_allocator<char>(node_allocator<int>(4)).node(), 4);
}

struct alignas(256) Wide {
    char bytes[256];
};

TEST(Containers, over_aligned_types) {
    heap arena(a_node());
    const auto aligned = [](auto allocator) {
        std::list<Wide, decltype(allocator)> list(allocator);
        for (int i = 0; i < 20; ++i) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&list.emplace_back()) % 256, 0u);
    };
    aligned(node_allocator<Wide>(a_node()));
    aligned(owner_allocator<Wide>());
    aligned(interleaved_allocator<Wide>());
    aligned(heap_allocator<Wide>(arena));
    heap_resource resource(arena);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(resource.allocate(10, 4096)) % 4096, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.allocate(10, 4096)) % 4096, 0u);
}

TEST(Containers, failures_throw) {
    heap arena(a_node());
    volatile std::size_t most = SIZE_MAX;  // hidden from the compiler, which warns of it
    EXPECT_THROW((void)node_allocator<int>(a_node()).allocate(most / 2), std::bad_array_new_length);
    EXPECT_THROW((void)node_allocator<char>(a_node()).allocate(most), std::bad_alloc);
    EXPECT_THROW((void)interleaved_allocator<int>().allocate(most / 8), std::bad_alloc);
    EXPECT_THROW((void)heap_allocator<char>(arena).allocate(most / 2), std::bad_alloc);
    EXPECT_THROW((void)node_allocator<int>(-5).allocate(1), std::bad_alloc);
    EXPECT_THROW((void)owner_allocator<int>(-5).allocate(1), std::bad_alloc);
    EXPECT_THROW((void)heap(-5), std::bad_alloc);
    EXPECT_THROW((void)node_resource(a_node()).allocate(most), std::bad_alloc);
}

TEST(Containers, resources_serve_pmr) {
    heap arena(a_node());
    heap_resource in_arena(arena);
    node_resource on_node(a_node());
    owner_resource of_owner;
    interleaved_resource everywhere;
    for (std::pmr::memory_resource* r :
         {static_cast<std::pmr::memory_resource*>(&in_arena), static_cast<std::pmr::memory_resource*>(&on_node),
          static_cast<std::pmr::memory_resource*>(&of_owner), static_cast<std::pmr::memory_resource*>(&everywhere)}) {
        std::pmr::unordered_map<int, std::pmr::string> map(r);
        for (int i = 0; i < 1000; ++i) map.emplace(i, std::string(static_cast<std::size_t>(i % 60), 'y'));
        EXPECT_EQ(map.at(59).size(), 59u);
        EXPECT_EQ(map.at(59).get_allocator().resource(), r);
        std::pmr::monotonic_buffer_resource buffer(r);
        std::pmr::vector<int> v(5000, 1, &buffer);
        EXPECT_EQ(v.size(), 5000u);
    }
    EXPECT_EQ(arena.used(), 0u);
}

TEST(Containers, resources_are_equal_where_places_are) {
    heap arena(a_node());
    heap other(a_node());
    EXPECT_TRUE(node_resource(0) == node_resource(0));
    EXPECT_FALSE(node_resource(0) == node_resource(1));
    EXPECT_FALSE(node_resource(0) == interleaved_resource());
    EXPECT_TRUE(heap_resource(arena) == heap_resource(arena));
    EXPECT_FALSE(heap_resource(arena) == heap_resource(other));
    EXPECT_FALSE(node_resource(0) == *std::pmr::new_delete_resource());
}

TEST(Containers, a_heap_moves_and_ends_once) {
    heap arena(a_node());
    void* p = arena.allocate(100);
    heap next(std::move(arena));
    EXPECT_GE(next.used(), 100u);
    std::free(p);
    heap last(a_node());
    ASSERT_NE(last.allocate(5000), nullptr);
    last = std::move(next);
    EXPECT_EQ(last.used(), 0u);
    ASSERT_NE(last.allocate(10), nullptr);
    last.reset();
    EXPECT_EQ(last.held(), 0u);
}

TEST(Containers, the_deleter_frees_raw_memory) {
    int node = -1;
    numalloc_nodes(&node, 1);
    std::unique_ptr<char[], numalloc::deleter> block(static_cast<char*>(numalloc_malloc_on_node(100, node)));
    ASSERT_NE(block, nullptr);
    block[99] = 1;
    block.reset(static_cast<char*>(numalloc_malloc_interleaved(3000000)));
    block[2999999] = 1;
}

TEST(Containers, at_least_is_what_the_block_has) {
    for (std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{700000}}) {
        const numalloc::sized_block block = numalloc::allocate_at_least(n);
        ASSERT_NE(block.data, nullptr);
        EXPECT_GE(block.bytes, n);
        EXPECT_EQ(block.bytes, malloc_usable_size(block.data));
        memset(block.data, 1, block.bytes);
        psm_free(block.data);
    }
    EXPECT_EQ(numalloc::allocate_at_least(static_cast<std::size_t>(-1)).data, nullptr);
    numalloc::interleaved_allocator<std::array<char, 48>> allocator;
    const auto got = allocator.allocate_at_least(23);
    EXPECT_GE(got.count, 23u);
    EXPECT_LE(got.count * 48, malloc_usable_size(got.ptr));
    EXPECT_GT((got.count + 1) * 48, malloc_usable_size(got.ptr));
    allocator.deallocate(got.ptr, got.count);
}

TEST(Containers, a_scope_places_and_ends) {
    numalloc_policy policy = NUMALLOC_LOCAL;
    numalloc_node_set nodes{};
    numalloc_node_set usable{};
    ASSERT_EQ(numalloc_node_set_parse("all", &usable), 0);
    ASSERT_EQ(numalloc_thread_policy(&policy, &nodes), 0);
    {
        const numalloc::scoped_placement outer(NUMALLOC_BIND, usable);
        EXPECT_TRUE(outer.ok());
        {
            const numalloc::scoped_placement inner(NUMALLOC_INTERLEAVE);
            EXPECT_TRUE(inner.ok());
            EXPECT_EQ(numalloc_thread_policy(&policy, &nodes), 1);
            EXPECT_EQ(policy, NUMALLOC_INTERLEAVE);
            const numalloc::scoped_placement refused(NUMALLOC_BIND, numalloc_node_set{});
            EXPECT_FALSE(refused.ok());
        }
        EXPECT_EQ(numalloc_thread_policy(&policy, &nodes), 1);
        EXPECT_EQ(policy, NUMALLOC_BIND);
        EXPECT_EQ(numalloc_node_set_count(&nodes), numalloc_node_set_count(&usable));
    }
    EXPECT_EQ(numalloc_thread_policy(&policy, &nodes), 0);
    numalloc::heap heap(NUMALLOC_INTERLEAVE, usable);
    void* p = heap.allocate(100);
    EXPECT_TRUE(heap.contains(p));
    heap.set_limit(0);
    EXPECT_EQ(heap.allocate(1000000), nullptr);
}

}  // namespace
