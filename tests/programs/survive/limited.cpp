// What a program may expect under a limit of address space (ulimit -v): its own mappings and
// threads still fit beside the heap, most of the limit can be allocated, and beyond it malloc says
// NULL and ENOMEM and goes on working. Arguments: the limit in MiB (0: none).
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>

#include "check.h"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void* thread_main(void*) {
    void* many[500];
    for (void*& p : many) CHECK((p = malloc(300)) != nullptr);
    for (void* p : many) free(p);
    return nullptr;
}

void start_threads(int count) {
    pthread_t threads[16];
    for (int i = 0; i < count; ++i) CHECK(pthread_create(&threads[i], nullptr, thread_main, nullptr) == 0);
    for (int i = 0; i < count; ++i) CHECK(pthread_join(threads[i], nullptr) == 0);
}

// Allocates blocks of one size until there are no more; gives the total in MiB.
std::size_t fill(std::size_t size) {
    struct Link {
        Link* next;
    };
    Link* list = nullptr;
    std::size_t total = 0;
    errno = 0;
    while (auto* p = static_cast<Link*>(malloc(size))) {
        p->next = list;
        list = p;
        total += size;
    }
    CHECK(errno == ENOMEM);
    errno = 0;
    CHECK(calloc(1, size) == nullptr || size < 4096);
    while (list != nullptr) {
        Link* next = list->next;
        free(list);
        list = next;
    }
    return total / mib;
}

}  // namespace

int main(int argc, char** argv) {
    testing_support::require_library();
    CHECK(argc == 2);
    const auto limit = static_cast<std::size_t>(std::atol(argv[1]));

    // An ordinary program first: a quarter of the limit in small blocks, threads, a mapping.
    const std::size_t share = (limit == 0 || limit > 256 ? 256 : limit) / 8 * mib;
    {
        const std::size_t count = share / 1000;
        auto** blocks = static_cast<char**>(malloc(count * sizeof(char*)));
        CHECK(blocks != nullptr);
        for (std::size_t i = 0; i < count; ++i) {
            CHECK((blocks[i] = static_cast<char*>(malloc(1000))) != nullptr);
            blocks[i][999] = 1;
        }
        start_threads(limit != 0 && limit < 128 ? 1 : 2);
        void* own = mmap(nullptr, share, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(own != MAP_FAILED);
        CHECK(munmap(own, share) == 0);
        for (std::size_t i = 0; i < count; ++i) free(blocks[i]);
        free(blocks);
    }
    if (limit == 0 || limit > 1024) {
        std::puts("limits are held");
        return 0;
    }
    // glibc can hand out all but some 10 MiB of the limit. Half is the least to expect, less where
    // the program's own libraries, a stack and its mapping are most of it.
    const std::size_t least = limit < 128 ? limit / 3 : limit / 2;
    for (std::size_t size : {std::size_t{200000}, std::size_t{3} * mib, std::size_t{5000}, std::size_t{400}}) {
        const std::size_t got = fill(size);
        if (got < least) {
            std::fprintf(stderr, "limit %zu MiB: only %zu MiB in blocks of %zu\n", limit, got, size);
            _exit(1);
        }
        CHECK(got <= limit);
    }
    // And after all that the program is as it was. (glibc's threads get nothing here below 256 MiB:
    // what main freed is in another arena.)
    start_threads(1);
    void* p = malloc(share / 4);
    CHECK(p != nullptr);
    free(p);
    std::puts("limits are held");
}
