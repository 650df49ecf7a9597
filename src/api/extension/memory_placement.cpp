// The levers of the placement study on what malloc serves, and moving what exists.
#include <cerrno>

#include "api/export.h"
#include "api/extension/error.h"
#include "api/malloc/initialise.h"
#include "api/extension/nodes.h"
#include "heap/process/locate.h"
#include "numalloc/numalloc.h"
#include "os/topology.h"
#include "placement/memory_home.h"
#include "placement/placement.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

int result_of(int error) { return error == 0 ? 0 : fail(error); }

}  // namespace

extern "C" {

NUMALLOC_EXPORT int numalloc_set_thread_placement(const char* text) noexcept {
    wake();
    MemoryPlacement wanted;
    if (text != nullptr && !parse_memory_placement(text, wanted)) return result_of(EINVAL);
    const int error = placement::set_thread_memory(text == nullptr ? nullptr : &wanted);
    settle_heap();
    return result_of(error);
}

NUMALLOC_EXPORT int numalloc_move(void* p, int node) noexcept {
    const NodeId n = usable_node(node);
    if (n == no_node) return -1;
    return result_of(process_heap.move_big(locate(p), n));
}

NUMALLOC_EXPORT int numalloc_rehome_thread(pthread_t thread, int node) noexcept {
    const NodeId n = usable_node(node);
    if (n == no_node) return -1;
    const int error = placement::rehome_thread(thread, static_cast<unsigned>(node));
    settle_heap();
    return result_of(error);
}

}  // extern "C"
