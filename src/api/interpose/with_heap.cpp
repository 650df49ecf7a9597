#include <cstdlib>

#include "api/malloc/aside.h"
#include "api/malloc/initialise.h"
#include "api/interpose/library.h"

namespace numalloc::api {

// The first malloc wakes everything.
void wake_library() {
    if (stepped_aside()) return wake();
    void* p = std::malloc(1);
    __asm__ volatile("" : "+r"(p) : : "memory");
    std::free(p);
}

void thread_moved() { settle_heap(); }

}  // namespace numalloc::api
