// What the C++ library does with memory.
#include <deque>
#include <exception>
#include <iostream>
#include <map>
#include <memory_resource>
#include <new>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

static std::size_t work(unsigned seed) {
    std::pmr::unsynchronized_pool_resource pool;
    std::pmr::map<int, std::pmr::string> tree(&pool);
    std::unordered_map<std::string, std::vector<int>> table;
    for (unsigned i = 0; i < 20000; ++i) {
        tree[static_cast<int>(i * 7919 % 10007)] = std::pmr::string(i % 90, 'x', &pool);
        table[std::to_string(i * seed % 997)].push_back(static_cast<int>(i));
    }
    std::size_t caught = 0;
    for (int i = 0; i < 1000; ++i) try {
            if (i % 2) throw std::runtime_error(std::string(static_cast<std::size_t>(i), 'e'));
            struct alignas(256) Wide {
                char c[512];
            };
            delete new Wide;
            throw std::bad_alloc();
        } catch (const std::exception&) {
            ++caught;
        }
    return tree.size() + table.size() + caught;
}

int main() {
    std::vector<std::size_t> results(4);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) threads.emplace_back([&results, t] { results[t] = work(t + 1); });
    for (auto& thread : threads) thread.join();
    for (auto result : results) std::cout << result << '\n';
    std::ostringstream text;
    for (int i = 0; i < 10000; ++i) text << i << ' ';
    const std::string all = text.str();
    const std::regex sevens("7+");
    std::cout << std::distance(std::sregex_iterator(all.begin(), all.end(), sevens), std::sregex_iterator()) << '\n';
    try {
        std::vector<char> huge(std::size_t{1} << 62);
        std::cout << huge.size();
    } catch (const std::bad_alloc&) {
        std::cout << "bad_alloc\n";
    }
}
