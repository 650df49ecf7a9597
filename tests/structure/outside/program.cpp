// The same for C++: containers, new and delete, a failing new. See program.c.
#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

#if __has_include(<numalloc/numalloc.h>)
#include <numalloc/numalloc.h>
#endif

static void work() {
    std::map<int, std::string> map;
    for (int i = 0; i < 1000; ++i) map[i * 7919 % 1009] = std::string(std::size_t(i % 200), 'x');
    std::vector<std::vector<int>> rows(50, std::vector<int>(300, 1));
    if (map.size() != 1000 || rows[49][299] != 1) std::abort();
}

int main(int argc, char**) {
    char on_stack[64];
    void* volatile not_ours = on_stack + 16;
    if (argc > 1) std::free(not_ours);

    std::thread thread(work);
    work();
    thread.join();

    bool thrown = false;
    std::size_t volatile too_much = ~std::size_t{0} / 4;
    try {
        ::operator delete(::operator new(too_much));
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    if (!thrown) return 3;

    void* p = ::operator new(1025);
    std::printf("%zu\n", malloc_usable_size(p));
    ::operator delete(p);
}
