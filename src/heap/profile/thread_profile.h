// What a recorded thread counts, beside its lists (heap/thread/lists.h). nullptr in its ThreadHeap: nobody counts.
#pragma once

#include "heap/profile/sampling.h"
#include "heap/profile/stack.h"
#include "heap/space/size_class.h"

namespace numalloc::profile {

struct ThreadProfile {
    std::uint64_t bound = 0;  // as ThreadHeap::bound, which stays 0: this thread's frees are all slow
    // Objects that may still come into the current list before the next malloc of the class is recorded:
    //   left[c] + length(current) == mallocs before that one
    std::int32_t left[class_count] = {};
    Random random{0};
    Trail trail;
    ThreadProfile* next_free = nullptr;
};

// For a thread that begins with empty lists; `old`: what its heap had in a life before, or nullptr. nullptr with no
// memory, which is counted.
ThreadProfile* begin_thread(ThreadProfile* old);
void end_thread(ThreadProfile* thread);

}  // namespace numalloc::profile
