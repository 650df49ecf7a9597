// An arena on the node of its thread: each query builds a tree in a heap of its own, uses it, and drops
// the heap. No destructor runs and no object is freed by itself.
#include <numalloc/numalloc.hpp>

#include <chrono>
#include <cstdio>
#include <map>
#include <set>
#include <vector>

#include "pages.h"

using Entry = std::pair<const int, int>;
using Tree = std::map<int, int, std::less<>, numalloc::heap_allocator<Entry>>;

static long answer(Tree& tree, int query) {
    for (int i = 0; i < 20000; ++i) tree[i * 7919 % 20011] += query;
    long sum = 0;
    for (const Entry& entry : tree) sum += entry.second;
    return sum;
}

int main() {
    int node = numalloc_current_node();
    if (numalloc_heap* probe = numalloc_heap_create(node)) numalloc_heap_destroy(probe);
    else numalloc_nodes(&node, 1);  // this CPU's node has no memory of its own
    numalloc::heap arena(node);
    constexpr int queries = 20;
    bool right = true;
    std::size_t used = 0;
    const auto start = std::chrono::steady_clock::now();
    for (int query = 1; query <= queries; ++query) {
        // The tree lives in the heap itself, and is never destroyed: the heap is emptied under it.
        Tree& tree = *new (arena.allocate(sizeof(Tree), alignof(Tree))) Tree(arena);
        right = right && answer(tree, query) == 20000L * query;
        used = arena.used();
        if (query == queries) {
            pages pages{};
            std::set<std::uintptr_t> seen;  // many entries share a page
            for (const Entry& entry : tree)
                if (seen.insert(reinterpret_cast<std::uintptr_t>(&entry) / PAGE).second) count_pages(&pages, &entry, 1);
            print_pages("the last query's entries", &pages);
            right = right && pages.on[node] == seen.size();
        }
        arena.reset();
        right = right && arena.used() == 0 && arena.held() == 0;
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    std::printf("%d queries of %zu KiB each on node %d, %.1f ms a query: %s\n", queries, used >> 10, arena.node(),
                took.count() / queries, right ? "all answers right" : "something is wrong");
    return right ? 0 : 1;
}
