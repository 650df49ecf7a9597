// Little of everything, for runs that ask how the library starts: prints "done".
#include <thread>
#include <vector>

#include "check.h"

int main() {
    testing_support::require_library();
    std::vector<std::vector<char>> blocks;
    for (std::size_t size = 1; size < 3000000; size = size * 3 + 1) blocks.emplace_back(size, 'a');
    for (int i = 0; i < 3; ++i)
        std::thread([&] {
            std::vector<char> own(100000, 'b');
            CHECK(own[99999] == 'b');
        }).join();
    std::puts("done");
}
