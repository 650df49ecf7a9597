// Uses all of numalloc.hpp, so that each compiler sees every template in use. See headers.py.
#include <numalloc/numalloc.hpp>

#include <list>
#include <string>
#include <unordered_map>
#include <vector>

template <class Allocator>
static std::size_t use(const Allocator& a) {
    using Traits = std::allocator_traits<Allocator>;
    std::vector<int, Allocator> v(10, 1, a);
    std::list<char, typename Traits::template rebind_alloc<char>> l(a);
    std::unordered_map<int, int, std::hash<int>, std::equal_to<int>,
                       typename Traits::template rebind_alloc<std::pair<const int, int>>>
        m(a);
    std::vector<int, Allocator> other(a);
    l.push_back('x');
    m[1] = 2;
    other = v;
    swap(v, other);
    v = std::move(other);
    return v.size() + l.size() + m.size() + (a != v.get_allocator() ? 1U : 0U);
}

int main() {
    numalloc::heap arena(0);
    numalloc::heap_resource in_arena(arena);
    numalloc::node_resource on_node(0);
    numalloc::owner_resource of_owner(1);
    numalloc::interleaved_resource everywhere;
    std::pmr::vector<std::pmr::string> names({"a", "b"}, &on_node);
    const bool same = on_node == in_arena || everywhere == of_owner;
    const std::size_t n = use(numalloc::node_allocator<int>(0)) + use(numalloc::owner_allocator<int>()) +
                          use(numalloc::interleaved_allocator<int>()) + use(numalloc::heap_allocator<int>(arena)) +
                          names.size();
    arena = numalloc::heap(0);
    return static_cast<int>(n) + (same ? 1 : 0);
}
