#include "api/malloc/make_room.h"

#include <cstdint>

#include "heap/node/process_heap.h"
#include "heap/thread/housekeeping.h"
#include "os/clock.h"
#include "os/libc_call.h"

namespace numalloc::api {

namespace policy::make_room {

// Less free memory than 1/16 of the request hardly decides.
constexpr Bytes decisive_part = 16;
// Milliseconds after a try that failed.
constexpr std::uint32_t pause = 10;

}  // namespace policy::make_room

namespace {

// Of each thread, because a try flushes its own lists only.
NUMALLOC_THREAD_LOCAL std::uint32_t failed_at = 0;
NUMALLOC_THREAD_LOCAL bool has_failed = false;

}  // namespace

bool make_room(Bytes n) {
    if (!process_heap.started() || os::in_libc_call()) return false;
    if (process_heap.mapped_free() < n / policy::make_room::decisive_part) return false;
    if (has_failed && os::milliseconds() - failed_at < policy::make_room::pause) return false;
    return_free_memory();
    return true;
}

void found_no_room() {
    failed_at = os::milliseconds();
    has_failed = true;
}

}  // namespace numalloc::api
