// A recorded thread's counts, beside its lists (heap/thread/lists.h). The pointer in ThreadHeap is nullptr if there are
// none.
#pragma once

#include "heap/profile/sampling.h"
#include "heap/profile/stack.h"
#include "heap/space/size_class.h"

namespace numalloc::profile {

struct ThreadProfile {
    std::uint64_t bound = 0;  // as ThreadHeap::bound, which stays 0 so that all frees take the slow path
    // Objects that may still enter the current list before a malloc of the class is recorded:
    //   left[c] + length(current) == mallocs before that one
    std::int32_t left[class_count] = {};
    Random random{0};
    Trail trail;
    ThreadProfile* next_free = nullptr;
};

// For a thread that begins with empty lists. `old`: the counts that its heap had for an earlier thread, or nullptr.
// Returns nullptr while the profile is off, or without memory, which is counted.
ThreadProfile* begin_thread(ThreadProfile* old);
void end_thread(ThreadProfile* thread);

}  // namespace numalloc::profile
