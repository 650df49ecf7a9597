// The last thing to try before a request fails.
#pragma once

#include "base/bits.h"

namespace numalloc::api {

// Called when the heap had no memory for n bytes. Under a limit of the address space (RLIMIT_AS) free memory counts as
// long as it is mapped, and a long block may not fit into it. So this returns it to the system, as malloc_trim() does.
// Returns whether to try the request again: not if little is free beside n, and not within 10 ms of a try of this
// thread that failed, because a program may ask again and again. The caller holds no lock and is outside the fork gate.
bool make_room(Bytes n);
// Called when that try has failed.
void found_no_room();

// For a request of n bytes that failed: returns the result of `try_again` if there may be memory now, else nullptr.
template <class Try>
void* after_making_room(Bytes n, Try try_again) {
    if (!make_room(n)) return nullptr;
    void* const p = try_again();
    if (p == nullptr) found_no_room();
    return p;
}

}  // namespace numalloc::api
