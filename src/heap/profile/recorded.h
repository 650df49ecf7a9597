// The state of the process's profile, for the files of this folder.
#pragma once

#include "heap/profile/sampling.h"
#include "heap/profile/store.h"
#include "os/clock.h"

namespace numalloc::profile {

struct ThreadProfile;

struct Recorded {
    Sampling sampling;
    Store store;
    std::atomic<std::uint64_t> random{0};  // for threads without a heap, and the seed for the other threads
    std::uint64_t began = 0;               // nanoseconds since 1970

    os::Lock<os::LockRank::profile> threads_lock;
    ThreadProfile* free_threads NUMALLOC_GUARDED_BY(threads_lock) = nullptr;
};

// nullptr while the profile is off.
extern Recorded* recorded;

}  // namespace numalloc::profile
