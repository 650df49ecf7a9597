#include <cstdlib>

#include "api/interpose/library.h"
#include "api/malloc/aside.h"
#include "api/malloc/initialise.h"
#include "statistics/page.h"

namespace numalloc::api {

// The first malloc starts everything.
void wake_library() {
    if (stepped_aside()) return wake();
    void* p = std::malloc(1);
    __asm__ volatile("" : "+r"(p) : : "memory");
    std::free(p);
}

const bool looking_up_starts_malloc = true;

void complete_start() { wake(); }

// The caller may be a signal handler that interrupted malloc. So the next malloc or free moves the heap.
void thread_moved() { hide_heap(true); }

void before_exec() { remove_statistics_page(); }
void after_exec() { remake_statistics_page(); }

}  // namespace numalloc::api
