// A hash map for each node, as a table that is partitioned over the machine: keys belong to a node, and
// all of a node's map (buckets, entries, long strings) lies there, whichever thread inserts.
#include <numalloc/numalloc.hpp>

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pages.h"

struct Partition {
    explicit Partition(int node) : resource(node), map(&resource) {}
    numalloc::node_resource resource;
    std::mutex mutex;
    std::pmr::unordered_map<long, std::pmr::string> map;
};

int main() {
    std::vector<int> nodes(static_cast<std::size_t>(numalloc_node_count()));
    numalloc_nodes(nodes.data(), static_cast<int>(nodes.size()));
    std::vector<std::unique_ptr<Partition>> partitions;
    for (int node : nodes) partitions.push_back(std::make_unique<Partition>(node));

    constexpr long keys = 40000;
    constexpr int writers = 4;
    std::vector<std::thread> threads;
    for (int t = 0; t < writers; ++t)
        threads.emplace_back([&, t] {
            for (long key = t; key < keys; key += writers) {
                Partition& p = *partitions[static_cast<std::size_t>(key) % partitions.size()];
                const std::string text = "the value of key number " + std::to_string(key);
                const std::lock_guard<std::mutex> guard(p.mutex);
                p.map.emplace(key, text);
            }
        });
    for (std::thread& thread : threads) thread.join();

    std::size_t entries = 0;
    bool right = true;
    for (std::size_t i = 0; i < partitions.size(); ++i) {
        pages pages{};
        std::unordered_set<std::uintptr_t> seen;
        for (const auto& [key, text] : partitions[i]->map) {
            right = right && text == ("the value of key number " + std::to_string(key)).c_str();
            if (seen.insert(reinterpret_cast<std::uintptr_t>(text.data()) / PAGE).second)
                count_pages(&pages, text.data(), 1);
            right = right && numalloc_node_of(text.data()) == nodes[i] && numalloc_node_of(&key) == nodes[i];
            ++entries;
        }
        const std::string what = "map of node " + std::to_string(nodes[i]) + ", its strings";
        print_pages(what.c_str(), &pages);
    }
    right = right && entries == keys;
    std::printf("%zu entries, %s\n", entries, right ? "all right, all on their node" : "something is wrong");
    return right ? 0 : 1;
}
