// A program with the library linked in from libnumalloc.a: malloc must be the archive's, in a
// dynamic and in a wholly static program. Told apart from glibc's by malloc_usable_size: the
// library's classes have no header, so a 64-byte block has just 64 bytes.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

int main() {
    void* p = malloc(64);
    const std::size_t usable = malloc_usable_size(p);
    if (usable != 64) {
        std::fprintf(stderr, "64 bytes have %zu: malloc is not the library's\n", usable);
        return 1;
    }
    free(p);
    std::vector<std::string> texts;
    std::thread threads[4];
    for (std::thread& t : threads)
        t = std::thread([] {
            std::vector<std::string> own;
            for (int i = 0; i < 20000; ++i) own.push_back(std::string(static_cast<std::size_t>(i % 700), 'q'));
        });
    for (int i = 0; i < 20000; ++i) texts.push_back(std::string(static_cast<std::size_t>(i % 500), 's'));
    for (std::thread& t : threads) t.join();
    for (int i = 0; i < 20000; ++i)
        if (texts[static_cast<std::size_t>(i)].size() != static_cast<std::size_t>(i % 500)) return 2;
    std::puts("linked in");
}
