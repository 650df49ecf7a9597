// Memory on a node that the caller chooses, and memory interleaved over all nodes.
#include "api/extension/on_node.h"

#include "api/export.h"
#include "api/extension/nodes.h"
#include "api/malloc/initialise.h"
#include "numalloc/numalloc.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

NodeId interleaved() {
    wake();
    return process_heap.interleaved();
}

}  // namespace

extern "C" {

NUMALLOC_EXPORT void* numalloc_malloc_on_node(size_t size, int node) noexcept {
    const NodeId n = named_node(node);
    return n == no_node ? nullptr : malloc_there(size, n);
}

NUMALLOC_EXPORT void* numalloc_calloc_on_node(size_t count, size_t size, int node) noexcept {
    const NodeId n = named_node(node);
    return n == no_node ? nullptr : calloc_there(count, size, n);
}

NUMALLOC_EXPORT void* numalloc_realloc_on_node(void* p, size_t size, int node) noexcept {
    const NodeId n = named_node(node);
    return n == no_node ? nullptr : realloc_there(p, size, n, "numalloc_realloc_on_node");
}

NUMALLOC_EXPORT void* numalloc_aligned_alloc_on_node(size_t alignment, size_t size, int node) noexcept {
    const NodeId n = named_node(node);
    return n == no_node ? nullptr : aligned_alloc_there(alignment, size, n);
}

NUMALLOC_EXPORT void* numalloc_malloc_interleaved(size_t size) noexcept { return malloc_there(size, interleaved()); }

NUMALLOC_EXPORT void* numalloc_calloc_interleaved(size_t count, size_t size) noexcept {
    return calloc_there(count, size, interleaved());
}

NUMALLOC_EXPORT void* numalloc_aligned_alloc_interleaved(size_t alignment, size_t size) noexcept {
    return aligned_alloc_there(alignment, size, interleaved());
}

}  // extern "C"
