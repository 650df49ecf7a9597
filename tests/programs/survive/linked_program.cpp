// A program linked with the library, for runs where preloading is ignored (AT_SECURE). Prints what
// it found: whether the kernel calls it secure, where malloc comes from.
#include <sys/auxv.h>

#include <string>
#include <thread>
#include <vector>

#include "check.h"

int main() {
    testing_support::require_library();
    std::vector<std::string> texts;
    for (int i = 0; i < 10000; ++i) texts.push_back(std::string(static_cast<std::size_t>(i % 300), 'c'));
    std::thread([&] { texts.clear(); }).join();
    std::printf("secure %lu library %d\n", getauxval(AT_SECURE), testing_support::library_in_use() ? 1 : 0);
}
